"""The headers that every answer of a server carries, encoded once a second."""

from typing import Self

Headers = list[tuple[bytes, bytes]]


class FixedHeaders:
    """Follows uvicorn's default headers: another list each time that the date moves on."""

    def __init__(self) -> None:
        self._source: Headers | None = None
        self.pairs: Headers = []
        self.lines = b""

    def of(self, source: Headers) -> Self:
        """Give these headers as they are sent: without the one that names the software."""
        if source is not self._source:
            self._source = source
            self.pairs = [(name, value) for name, value in source if name.lower() != b"server"]
            self.lines = b"".join(b"%b: %b\r\n" % pair for pair in self.pairs)
        return self
