"""Decompresses a body step by step, within bounds."""

# pure

import zlib
from typing import Final

from adloom.runtime.outbound.failure import FailureKind, OutboundError

ACCEPTED_ENCODINGS: Final = "gzip, deflate"
# HTML that repeats itself is compressed fifty times; a bomb is compressed a thousand times.
RATIO_MAX: Final = 100
RATIO_FREE_BYTES: Final = 64 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


class BoundedBody:
    """Collects a body up to a number of decompressed bytes."""

    def __init__(self, encoding: str, *, bytes_max: int) -> None:
        self._encoding = encoding.strip().lower()
        if self._encoding not in {"", "identity", *_WINDOWS}:
            shown = self._encoding[:40]
            raise OutboundError(
                FailureKind.COMPRESSION, f"The answer is compressed as {shown!r}, which we did not ask for."
            )
        self._bytes_max = bytes_max
        self._inflater = (
            None if self._encoding in {"", "identity"} else zlib.decompressobj(_WINDOWS[self._encoding])
        )
        self._received = 0
        self._body = bytearray()
        self.is_full = False

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def feed(self, chunk: bytes) -> None:
        """Add bytes as they came; sets `is_full` where there are more than the bound."""
        self._received += len(chunk)
        room = self._bytes_max + 1 - len(self._body)
        if self._inflater is None:
            self._body += chunk[:room]
        elif not self._inflater.eof:  # What follows the compressed part is padding.
            self._body += self._inflate(chunk, room)
        if len(self._body) > self._bytes_max:
            self.is_full = True
            del self._body[self._bytes_max :]
        if len(self._body) > max(RATIO_FREE_BYTES, RATIO_MAX * self._received):
            raise OutboundError(
                FailureKind.COMPRESSION, f"The answer is compressed more than {RATIO_MAX} times."
            )

    def finish(self) -> None:
        """Check that the compressed body is whole."""
        if self._inflater is not None and not self._inflater.eof and self._received and not self.is_full:
            raise OutboundError(FailureKind.COMPRESSION, "The answer's compressed body ends too early.")

    def _inflate(self, chunk: bytes, room: int) -> bytes:
        assert self._inflater is not None
        try:
            return self._inflater.decompress(chunk, room)
        except zlib.error as error:
            if self._encoding == "deflate" and self._received == len(chunk):
                # Some servers send deflate without its header.
                self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
                try:
                    return self._inflater.decompress(chunk, room)
                except zlib.error:
                    pass
            raise OutboundError(FailureKind.COMPRESSION, "The answer's compression is broken.") from error
