"""The heads of requests that were parsed before, by their raw bytes: browsers send the same lines again and again.

Only those of whole `GET` and `POST` requests are remembered, and only what the parser accepted. Their bytes are
kept in this process's memory, without the address that sent them, and never with cookies or credentials. The line
in which a proxy names the address of its client is taken out first: else no two heads behind a proxy were alike.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

HEADS_MAX: Final = 4_096  # At the bound all are forgotten: about 12 MB.
HEAD_BYTES_MAX: Final = 1_024

# What every parser understands alike. The rest of a request line is left to the parser.
_LINE: Final = re.compile(rb"(GET|POST) (/[!\"$->@-~]*) HTTP/1\.1")
_VERSION: Final = b" HTTP/1.1"
_QUERY_CHARACTERS: Final = bytes(code for code in range(ord("!"), ord("~") + 1) if code != ord("#"))
# Who somebody is, what differs in every request, and what comes in pieces: none of it is remembered.
_NOT_KEPT: Final = frozenset(
    (
        b"cookie",
        b"authorization",
        b"x-api-key",
        b"x-device-id",
        b"x-session-id",
        b"x-forwarded-for",
        b"x-real-ip",
        b"forwarded",
        b"cf-connecting-ip",
        b"true-client-ip",
        b"x-request-id",
        b"traceparent",
        b"transfer-encoding",
        b"expect",
    )
)


class Head(msgspec.Struct, gc=False):
    """The headers of a request, and what was worked out from them."""

    headers: list[tuple[bytes, bytes]]
    first_values: dict[bytes, bytes]
    connection: bytes
    body_bytes: int = 0
    # What the application worked out from them; all may be replaced at any time.
    context: Any = None
    info: Any = None
    has_marks: bool = True  # Whether they may say that the sender is no ordinary browser.


FORWARDED_FOR: Final = b"x-forwarded-for"
_FORWARDED_START: Final = re.compile(rb"\r\nX-Forwarded-For: ", re.IGNORECASE)
# What addresses in a list are written with: of such a value every parser makes the same.
_FORWARDED_CHARACTERS: Final = b"0123456789.:, abcdefABCDEF"

RequestLine = tuple[bytes, bytes, bytes, Any]  # Method, path, query and route.
FindRoute = Callable[[bytes, bytes], Any]


def is_plain_list(value: bytes) -> bool:
    """Return whether every parser makes the same of a list of addresses."""
    return bool(value) and not value.strip(_FORWARDED_CHARACTERS) and value.strip() == value


class KnownHeads:
    """Remembers heads by their bytes after the request line, and request lines without their query."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}
        self._lines: dict[bytes, RequestLine] = {}
        self.forwarded_start = b""  # How a proxy begins the line that names its client, once one has.
        self.find = self._heads.get
        self.find_line = self._lines.get

    def parse_line(self, line: bytes, find_route: FindRoute) -> RequestLine | None:
        """Parse a request line that leaves no doubt; a query is a visitor's, so only what is before it is kept."""
        begin, mark, rest = line.partition(b"?")
        query = rest[: -len(_VERSION)]
        # Deleting all that may be there takes a third of the time of a regular expression.
        if mark and (not rest.endswith(_VERSION) or query.translate(None, _QUERY_CHARACTERS)):
            return None
        plain = begin + _VERSION if mark else line
        known = self.find_line(plain)
        if known is None:
            matched = _LINE.fullmatch(plain)
            if matched is None:
                return None
            method, path = matched.groups()
            route = find_route(method, path)
            known = method, path, b"", route
            # Below a prefix, what has a query is mostly asked for once: a pixel with its token.
            if len(plain) <= HEAD_BYTES_MAX and not (mark and (route is None or route.is_prefix)):
                if len(self._lines) >= HEADS_MAX:
                    self._lines.clear()
                self._lines[plain] = known
        return (known[0], known[1], query, known[3]) if mark else known

    def __len__(self) -> int:
        return len(self._heads)

    def learn_forwarded(self, lines: bytes) -> None:
        """Learn how the line is written that names forwarded addresses: a proxy writes it the same way each time."""
        found = _FORWARDED_START.search(b"\r\n" + lines)
        if found is not None:
            self.forwarded_start = found[0]

    def remember(self, lines: bytes, head: Head) -> None:
        """Remember the head that some bytes were parsed to, if they are nothing but its lines."""
        ends = lines.count(b"\r\n")
        if (
            len(lines) > HEAD_BYTES_MAX
            or ends != len(head.headers) + 1
            or lines.count(b"\n") != ends
            or b"\r\n\r\n" in lines[:-1]  # More than one head.
            or not _NOT_KEPT.isdisjoint(head.first_values)
        ):
            return
        if len(self._heads) >= HEADS_MAX:
            self._heads.clear()
        self._heads[lines] = head
