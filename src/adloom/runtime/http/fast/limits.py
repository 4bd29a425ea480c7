"""The bounds of one connection: sizes and times, and what happens at each."""

import msgspec

_KIB = 1024
_MIB = 1024 * _KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one connection."""

    request_line_bytes_max: int = 8 * _KIB  # 414
    header_bytes_max: int = 16 * _KIB  # 431
    header_count_max: int = 100  # 431
    body_bytes_max: int = _MIB  # 413, on the routes of the ASGI app; a fast route has its own
    parse_bytes_max: int = 4 * _KIB  # Parsed in one go: what a busy connection may queue beyond its answer.
    write_buffer_bytes_max: int = 64 * _KIB  # Unread answers; no request is read or begun beyond it.
    discard_bytes_max: int = 16 * _MIB  # Read and thrown away after a refusal; then the connection is cut.
    header_seconds_max: float = 10.0  # 408, from the first byte of a request to its blank line
    body_seconds_max: float = 15.0  # 408, from the blank line to the last byte
    keep_alive_seconds_max: float = 30.0  # Closed without a word.
    answer_seconds_max: float = 30.0  # 503, for a fast route whose answer does not come
    write_seconds_max: float = 30.0  # Cut: the client has stopped reading.

    @property
    def tick_seconds(self) -> float:
        """How often a connection checks its deadlines: no deadline is nearer than this."""
        return min(
            self.header_seconds_max,
            self.body_seconds_max,
            self.keep_alive_seconds_max,
            self.answer_seconds_max,
            self.write_seconds_max,
        )


DEFAULT_LIMITS = Limits()
FAST_BODY_BYTES_MAX = 64 * _KIB
