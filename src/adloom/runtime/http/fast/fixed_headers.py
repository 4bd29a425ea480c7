"""The headers that every answer of a server carries, encoded once a second."""

from typing import Self

from adloom.runtime.http.fast.fast_routes import FastAnswer

_HAS_NO_LENGTH = (b"HTTP/1.1 204", b"HTTP/1.1 304")
_LENGTHS_KEPT = 4_096
_LENGTHS = tuple(b"content-length: %d\r\n\r\n" % size for size in range(_LENGTHS_KEPT))

Headers = list[tuple[bytes, bytes]]


class FixedHeaders:
    """Follows uvicorn's default headers: another list each time that the date moves on."""

    def __init__(self) -> None:
        self._source: Headers | None = None
        self.pairs: Headers = []
        self.lines = b""
        # The last answer without a line of its connection, and its bytes: events that are stored together have the same.
        self._last: FastAnswer | None = None
        self._encoded = b""

    def refresh(self, source: Headers) -> Self:
        """Take over uvicorn's headers if they changed, without the one that names the software."""
        if source is not self._source:
            self._source = source
            self.pairs = [(name, value) for name, value in source if name.lower() != b"server"]
            self.lines = b"".join(b"%b: %b\r\n" % pair for pair in self.pairs)
            self._last = None
        return self

    def encode(
        self,
        answer: FastAnswer,
        connection: bytes,
        source: Headers,
        has_body: bool = True,  # noqa: FBT001, FBT002 - on the path of every answer, where names would cost
    ) -> bytes:
        """Encode an answer with these headers; `connection` is its connection header line."""
        if source is not self._source:
            self.refresh(source)
        is_plain = has_body and not connection
        if is_plain and answer is self._last:
            return self._encoded
        head, body = answer.head, answer.body
        if not body and head.startswith(_HAS_NO_LENGTH):
            return b"%b%b%b\r\n" % (head, self.lines, connection)
        size = len(body)
        length = _LENGTHS[size] if size < _LENGTHS_KEPT else b"content-length: %d\r\n\r\n" % size
        # One join: formatting would parse the format and copy twice.
        encoded = b"".join((head, self.lines, connection, length, body if has_body else b""))
        if is_plain:
            self._last, self._encoded = answer, encoded
        return encoded
