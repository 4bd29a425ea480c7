"""The heads of requests that were parsed before, by their raw bytes: browsers send the same lines again and again.

Only whole `GET` requests without a body are remembered, and only what the parser accepted. Their bytes are kept
in this process's memory, without the address that sent them, and never with cookies or credentials.
"""

import re
from typing import Any, Final

import msgspec

HEADS_MAX: Final = 4_096  # At the bound all are forgotten: about 12 MB.
HEAD_BYTES_MAX: Final = 1_024

# What every parser understands alike. The rest of a request line is left to the parser.
_LINE: Final = re.compile(rb"GET (/[!\"$->@-~]*)(?:\?([!\"$-~]*))? HTTP/1\.1")
# Who somebody is, and what comes with a body: neither is remembered.
_NOT_KEPT: Final = frozenset(
    (
        b"cookie",
        b"authorization",
        b"x-api-key",
        b"x-device-id",
        b"x-session-id",
        b"content-length",
        b"transfer-encoding",
        b"expect",
    )
)

match_line: Final = _LINE.fullmatch


class Head(msgspec.Struct, gc=False):
    """The headers of a request, and what was worked out from them."""

    headers: list[tuple[bytes, bytes]]
    first_values: dict[bytes, bytes]
    connection: bytes
    memo: Any = None  # What the application worked out from them; it may be replaced at any time.


class KnownHeads:
    """Remembers heads by their bytes after the request line."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}
        self.find = self._heads.get

    def __len__(self) -> int:
        return len(self._heads)

    def remember(self, lines: bytes, head: Head) -> None:
        """Remember the head that some bytes were parsed to, if they are nothing but its lines."""
        ends = lines.count(b"\r\n")
        if (
            len(lines) > HEAD_BYTES_MAX
            or ends != len(head.headers) + 1
            or lines.count(b"\n") != ends
            or not _NOT_KEPT.isdisjoint(head.first_values)
        ):
            return
        if len(self._heads) >= HEADS_MAX:
            self._heads.clear()
        self._heads[lines] = head
