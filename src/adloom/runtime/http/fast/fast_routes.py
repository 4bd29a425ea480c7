"""The vocabulary of fast routes: bounds, a request, its answer, and the table that finds the route."""

import asyncio
import re
import sys
from collections.abc import Callable, Generator, Sequence
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec

from adloom.core.errors import AdloomError, MethodNotAllowedError, RateLimitedError, UnavailableError
from adloom.runtime.http.fast.known_heads import FORWARDED_FOR, Head
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE, encode_problem

_KIB = 1024
_MIB = 1024 * _KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one connection."""

    request_line_bytes_max: int = 8 * _KIB  # 414
    header_bytes_max: int = 16 * _KIB  # 431
    header_count_max: int = 100  # 431
    body_bytes_max: int = _MIB  # 413, on the routes of the ASGI app; a fast route has its own
    parse_bytes_max: int = 4 * _KIB  # Parsed in one go: what a busy connection may queue beyond its answer.
    turn_bytes_max: int = 16 * _KIB  # Parsed in one turn of the loop: then other connections have theirs.
    write_buffer_bytes_max: int = 64 * _KIB  # Unread answers; no request is read or begun beyond it.
    discard_bytes_max: int = 16 * _MIB  # Read and thrown away after a refusal; then the connection is cut.
    header_seconds_max: float = 10.0  # 408, from the first byte of a request to its blank line
    body_seconds_max: float = 15.0  # 408, from the blank line to the last byte
    keep_alive_seconds_max: float = 30.0  # Closed without a word.
    answer_seconds_max: float = 30.0  # 503, for a fast route whose answer does not come
    write_seconds_max: float = 30.0  # Cut: the client has stopped reading.
    connections_max: int = sys.maxsize  # Of the process; what comes beyond is closed at once.
    requires_host: bool = True  # 400 to HTTP/1.1 with none or several, as RFC 9112 asks.

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


PREFLIGHT_SECONDS_MAX = b"86400"
PREFLIGHT_HEADERS = b"*, authorization, content-type"

_HEADER_NAME = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


class FastRequest(msgspec.Struct, gc=False):
    """One whole request; header names are in lower case."""

    method: bytes
    path: bytes
    query: bytes = b""
    headers: list[tuple[bytes, bytes]] = []
    body: bytes = b""
    client: str | None = None
    version: str = "1.1"
    first_values: dict[bytes, bytes] | None = None
    sender: Any = None  # Who sent it, once that was found out.
    head: Head | None = None  # If others came with the same.
    forwarded: bytes | None = None  # The addresses that a proxy named, where they are not among the headers.

    def get_header(self, name: bytes) -> bytes | None:
        if self.first_values is None:
            self.first_values = index_headers(self.headers)
        return self.first_values.get(name)


class FastAnswer(msgspec.Struct, frozen=True, gc=False):
    """The answer of a fast route: a head made by `encode_head`, and a body."""

    head: bytes
    body: bytes = b""


class DeferredAnswer(msgspec.Struct, eq=False):
    """An answer that is still to come: cheaper than a future, with callbacks in the same tick."""

    answer: FastAnswer | None = None
    _error: AdloomError | None = None
    calls: tuple[Callable[["DeferredAnswer", FastAnswer], object], ...] = ()

    def resolve(self, answer: FastAnswer) -> None:
        self.answer = answer
        calls, self.calls = self.calls, ()  # Else it would hold the connection, and that it.
        for call in calls:
            call(self, answer)

    def fail(self, error: AdloomError) -> None:
        """Answer with an error, which is raised where it is awaited."""
        self._error = error
        self.resolve(make_problem_answer(error))

    def add_callback(self, call: "Callable[[DeferredAnswer, FastAnswer], object]") -> None:
        if self.answer is None:
            self.calls += (call,)
        else:
            call(self, self.answer)

    def __await__(self) -> Generator[Any, None, FastAnswer]:
        """Wait for it; not for the hot path."""
        answered: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
        self.add_callback(lambda _, answer: None if answered.done() else answered.set_result(answer))
        answer = yield from answered.__await__()
        if self._error is not None:
            raise self._error
        return answer


PendingAnswer: TypeAlias = asyncio.Future[FastAnswer] | DeferredAnswer
FastResult: TypeAlias = FastAnswer | PendingAnswer | None
FastHandler = Callable[[FastRequest], FastResult]


class FastRoute(msgspec.Struct, frozen=True):
    """The handler of a method on a path, or on every path below a prefix."""

    method: bytes
    path: bytes
    is_prefix: bool
    handler: FastHandler
    body_bytes_max: int = FAST_BODY_BYTES_MAX
    is_batched: bool = False  # Its requests of one tick are answered together.
    fixed_rejection: FastAnswer | None = None  # The only answer of a route that rejects everything.

    def covers(self, path: bytes) -> bool:
        return path.startswith(self.path) if self.is_prefix else path == self.path


_MethodTable = dict[bytes, FastRoute]
_ANY_OTHER = b""  # No method is empty: the key of what answers a method that the path does not take.


def make_alias_route(route: FastRoute, path: bytes) -> FastRoute:
    """Return a route at another path; its handler reads the path that it knows."""
    handler, known, length = route.handler, route.path, len(path)

    def handle_known(request: FastRequest) -> FastResult:
        request.path = known + request.path[length:]
        return handler(request)

    return msgspec.structs.replace(route, path=path, handler=handle_known)


class FastRoutes:
    """All fast routes by path and method; the ASGI app answers everything else.

    Aliases are looked for last, so that they cost nothing on other paths.
    """

    def __init__(self, routes: Sequence[FastRoute], aliases: Sequence[FastRoute] = ()) -> None:
        self._aliases = FastRoutes(aliases) if aliases else None
        paths = {route.path for route in routes if not route.is_prefix}
        prefixes = {route.path for route in routes if route.is_prefix}
        self._exact = {path: _list_methods(path, routes) for path in paths}
        # The longest prefix first, so that the first that fits is the nearest.
        self._prefixes = [(p, _list_methods(p, routes)) for p in sorted(prefixes, key=len, reverse=True)]

    def find(self, method: bytes, path: bytes) -> FastRoute | None:
        """Find the route; a known path with another method gets a route that rejects it."""
        table = self._exact.get(path)
        if table is None:
            for prefix, below in self._prefixes:
                if path.startswith(prefix):
                    table = below
                    break
            else:
                return None if self._aliases is None else self._aliases.find(method, path)
        return table.get(method) or table[_ANY_OTHER]


def _list_methods(path: bytes, routes: Sequence[FastRoute]) -> _MethodTable:
    """Collect the methods of one path: its own first, then those of prefixes above it, then ours."""
    nearest_last = sorted(
        (route for route in routes if route.covers(path)),
        key=lambda route: (len(route.path), not route.is_prefix),
    )
    table = {route.method: route for route in nearest_last}
    if b"GET" in table:
        table.setdefault(b"HEAD", table[b"GET"])
    allowed = b", ".join(sorted({*table, b"OPTIONS"}))
    table.setdefault(b"OPTIONS", _make_preflight(allowed))
    table[_ANY_OTHER] = _make_rejection(allowed)
    return table


def _make_preflight(allowed: bytes) -> FastRoute:
    answer = FastAnswer(
        encode_head(
            HTTPStatus.NO_CONTENT,
            None,
            (b"allow", allowed),
            (b"access-control-allow-methods", allowed),
            (b"access-control-allow-headers", PREFLIGHT_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS_MAX),
        )
    )
    return FastRoute(b"OPTIONS", b"", is_prefix=True, handler=lambda _: answer)


def _make_rejection(allowed: bytes) -> FastRoute:
    error = MethodNotAllowedError(f"This address takes {allowed.decode()}.")
    answer = make_problem_answer(error, (b"allow", allowed))
    return FastRoute(_ANY_OTHER, b"", is_prefix=True, handler=lambda _: answer, fixed_rejection=answer)


def read_forwarded(request: FastRequest) -> bytes | None:
    """Return the addresses that proxies named, several lines as one; None where there is no such header."""
    if request.forwarded is not None or request.head is not None:
        return request.forwarded  # A head that others share never has them.
    lines = [value for name, value in request.headers if name == FORWARDED_FOR]
    return b",".join(lines) if lines else None


def list_headers(request: FastRequest) -> list[tuple[bytes, bytes]]:
    """Return all headers, with the addresses that were taken out of them."""
    forwarded = request.forwarded
    return request.headers if forwarded is None else [*request.headers, (FORWARDED_FOR, forwarded)]


def index_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Index headers by name; the first value of a repeated one counts."""
    return dict(reversed(headers))


def encode_head(status: HTTPStatus, content_type: bytes | None, *headers: tuple[bytes, bytes]) -> bytes:
    """Encode status and headers, readable from any origin; the connection adds date, length and its own.

    Raises ValueError for a header that would break out of its line.
    """
    lines = [b"HTTP/1.1 %d %b\r\naccess-control-allow-origin: *\r\n" % (status, status.phrase.encode())]
    if content_type is not None:
        headers = ((b"content-type", content_type), *headers)
    for name, value in headers:
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise ValueError(f"The header {name!r} cannot be sent: {value!r}.")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def make_problem_answer(error: AdloomError, *headers: tuple[bytes, bytes]) -> FastAnswer:
    if isinstance(error, RateLimitedError | UnavailableError):
        headers = (*headers, (b"retry-after", b"%d" % error.retry_after_seconds))
    # Caches may keep a 404 unasked, and what is not there may be a second later.
    headers = (*headers, (b"cache-control", b"no-store"))
    return FastAnswer(
        encode_head(error.status, PROBLEM_CONTENT_TYPE.encode(), *headers),
        encode_problem(error),
    )
