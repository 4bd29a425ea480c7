"""From bytes to requests: the parser's callbacks, and the bounds on what they may collect."""

from enum import Enum, auto
from typing import Protocol

import httptools
import structlog

from adloom.core.errors import AdloomError, BadRequestError, BodyTooLargeError
from adloom.runtime.http.fast.errors import (
    INTERNAL_FAILURE,
    ExpectationFailedError,
    HeadersTooLargeError,
    HttpVersionNotSupportedError,
    MethodNotImplementedError,
    RequestRejectedError,
    UriTooLongError,
    find_rejection,
)
from adloom.runtime.http.fast.fast_routes import (
    FastRequest,
    FastRoute,
    FastRoutes,
    Limits,
    index_headers,
)
from adloom.runtime.http.fast.known_heads import FORWARDED_FOR, Head, KnownHeads, RequestLine, is_plain_list

# What an answer says about its connection; in HTTP/1.1 to stay open goes without saying.
STAYS_OPEN = b""
STAYS_OPEN_FOR_1_0 = b"connection: keep-alive\r\n"
CLOSES = b"connection: close\r\n"

# The rest of a request line beside method and target: two spaces and the version.
_LINE_EXTRA_BYTES = 10
# The rest of a header line beside name and value.
_HEADER_EXTRA_BYTES = 4
_VERSIONS = frozenset({"1.0", "1.1"})
# A head up to the addresses that a proxy named, and after them; no request has as few bytes as this one.
_NONE_BEFORE: tuple[bytes, bytes, RequestLine, Head] = (
    b"\0", b"", (b"", b"", b"", None), Head([], {}, STAYS_OPEN, -1),
)  # fmt: skip
_HEAD_END = b"\r\n\r\n"
# A chunk of one byte takes six on the wire; what takes more is chunk extensions or trailers.
_CHUNK_BYTES_PER_BYTE_MAX = 8

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Phase(Enum):
    """Where in a request the next byte belongs."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()


_IDLE, _HEAD, _BODY = Phase.IDLE, Phase.HEAD, Phase.BODY


class RequestSink(Protocol):
    """Takes each request when it is whole."""

    def on_request(self, request: FastRequest, route: FastRoute | None, connection: bytes) -> None:
        """Take a whole request, its route, and the connection header of its answer."""

    def on_expectation(self) -> None:
        """Tell the client to send its body, after the answers that are due."""


class RequestParser:
    """Parses the requests of one connection."""

    def __init__(
        self,
        sink: RequestSink,
        routes: FastRoutes,
        limits: Limits,
        client: str | None,
        heads: KnownHeads | None = None,
    ) -> None:
        self._on_request = sink.on_request
        self._on_expectation = sink.on_expectation
        self._find_route = routes.find
        self._limits = limits
        self._heads = KnownHeads() if heads is None else heads
        self._find_head = self._heads.find
        self._find_line = self._heads.find_line
        # A head is measured only where it may be too large: of its first and last piece we know no more
        # than that neither is larger than a piece can be.
        self._unmeasured_bytes_max = limits.header_bytes_max - 2 * limits.parse_bytes_max
        self._last = _NONE_BEFORE  # Another request of a connection often has the same head: at most a piece.
        self._client = client
        self._parser = httptools.HttpRequestParser(self)

        self.is_finished = False
        self.phase = _IDLE
        self.phase_since = 0.0
        self._phase_bytes = 0
        self._is_phase_new = False
        self._piece_bytes = 0
        self._now = 0.0

        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: bytes | bytearray = b""
        self._body_bytes_max = 0
        self._is_upgrade = False
        self._refusal: RequestRejectedError | None = None
        self._request: FastRequest
        self._route: FastRoute | None = None
        self._connection = STAYS_OPEN

    def feed(self, piece: bytes | memoryview, now: float) -> None:  # noqa: C901, PLR0912 - all in one function: calls would cost
        """Parse the next piece; RequestRejectedError carries the answer to bytes that are no request."""
        if self.phase is not _IDLE or type(piece) is not bytes:
            self._parse(piece, now)
            return
        lines = forwarded = None
        # A request whose head was parsed before is passed on at once.
        if piece.startswith(self._last[0]):
            before, after, (method, path, query, route), head = self._last
            end = len(before)
            if after:
                forwarded = piece[end : (end := piece.find(b"\r\n", end))]
            start = end + len(after)
            is_same = len(piece) == start + head.body_bytes and piece.startswith(after, end)
            if is_same and (forwarded is None or is_plain_list(forwarded)):
                self.phase_since = now
                headers, values, client = head.headers, head.first_values, self._client
                body = piece[start:] if head.body_bytes else b""
                request = FastRequest(
                    method, path, query, headers, body, client, "1.1", values, None, head, forwarded
                )
                self._on_request(request, route, STAYS_OPEN)
                return
            forwarded = None
        # The last blank line is found in a third of the time that the first takes; no known head has one within.
        if (end := piece.rfind(_HEAD_END)) > 0:
            line_end = piece.find(b"\r\n")
            line = piece[:line_end]
            known = self._find_line(line) or self._heads.parse_line(line, self._find_route)
            if known is not None and line_end <= self._limits.request_line_bytes_max:
                opening, start, cut, after = self._heads.forwarded_start, end + 4, end + 4, b""
                if opening and (begin := piece.rfind(opening, line_end, end)) > 0:
                    value_begin = begin + len(opening)
                    value_end = piece.find(b"\r\n", value_begin)
                    if is_plain_list(value := piece[value_begin:value_end]):
                        forwarded, cut, after = value, value_begin, piece[value_end:start]
                        lines = piece[line_end + 2 : begin + 2] + after[2:]
                if lines is None:
                    lines = piece[line_end + 2 : start]
                head = self._find_head(lines)
                if head is not None and len(piece) == start + head.body_bytes:
                    method, path, query, route = known
                    if route is None or head.body_bytes <= route.body_bytes_max:
                        self.phase_since, connection = now, head.connection
                        if connection is CLOSES:
                            self.is_finished = True
                        elif not query:
                            self._last = piece[:cut], after, known, head
                        body = piece[start:] if head.body_bytes else b""
                        headers, values, client = head.headers, head.first_values, self._client
                        request = FastRequest(
                            method, path, query, headers, body, client, "1.1", values, None, head, forwarded
                        )
                        self._on_request(request, route, connection)
                        return
        self._parse(piece, now)
        if lines is not None and self.phase is _IDLE and not self._is_upgrade:
            self._remember_head(lines, len(piece) - end - 4, has_forwarded=forwarded is not None)

    def _remember_head(self, lines: bytes, rest_bytes: int, *, has_forwarded: bool) -> None:
        request = self._request
        headers, values = request.headers, request.first_values or {}
        body_bytes = int(values.get(b"content-length", b"0"))
        # The lines are all up to the last head of the piece, what was parsed is of its last request: it must be the only one.
        if not rest_bytes == body_bytes == len(request.body):
            return
        if FORWARDED_FOR in values:
            self._heads.learn_forwarded(lines)
        if has_forwarded:
            headers = [header for header in headers if header[0] != FORWARDED_FOR]
            values = index_headers(headers)
        self._heads.remember(lines, Head(headers, values, self._connection, body_bytes))

    def _parse(self, piece: bytes | memoryview, now: float) -> None:
        self._now = now
        self._piece_bytes = len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._feed_as_plain(piece[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if not self.is_finished:
                raise self._refusal or _make_rejection(error) from error
        if self.phase is not _IDLE:
            self._check_bounds()

    def stop(self) -> None:
        """Release the parser and the sink, which hold a reference cycle."""
        self.is_finished = True
        del self._parser, self._on_request, self._on_expectation

    def _feed_as_plain(self, rest: bytes | memoryview) -> None:
        """Parse a request again without its `Upgrade`, which we ignore, and then what came after its head."""
        lines = [b"%b: %b\r\n" % header for header in self._headers if header[0] != b"upgrade"]
        version = self._parser.get_http_version().encode()
        head = b"%b %b HTTP/%b\r\n%b\r\n" % (self._parser.get_method(), self._url, version, b"".join(lines))
        self._parser = httptools.HttpRequestParser(self)
        self._is_upgrade = False
        self._parse(head, self._now)
        self._parse(rest, self._now)

    def _check_bounds(self) -> None:
        """Reject an unfinished head or body that is over its bound for certain."""
        if self._is_phase_new:  # Some of the piece belonged to what came before.
            self._is_phase_new = False
            return
        self._phase_bytes += self._piece_bytes
        limits = self._limits
        if len(self._url) > limits.request_line_bytes_max:
            raise self._reject(_make_line_error(limits))
        framing_bytes_max = (
            limits.request_line_bytes_max
            if self.phase is _HEAD
            else len(self._body) * _CHUNK_BYTES_PER_BYTE_MAX
        )
        if (
            self._phase_bytes > limits.header_bytes_max + framing_bytes_max
            or len(self._headers) > limits.header_count_max
        ):
            raise self._reject(_make_header_error(limits))

    def _reject(self, error: AdloomError) -> RequestRejectedError:
        """Remember the rejection: httptools reports that a callback failed, but not always why."""
        self._refusal = find_rejection(error)
        return self._refusal

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._body = b""
        self.phase = _HEAD
        self.phase_since = self._now
        self._phase_bytes = 0
        self._is_phase_new = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header, or a trailer after the body."""
        self._headers.append((name.lower(), value.rstrip()))

    def on_headers_complete(self) -> None:
        """Find the route, and reject what is over its bounds before its body comes."""
        parser = self._parser
        method = parser.get_method()
        if parser.should_upgrade():
            if method == b"CONNECT":
                raise self._reject(MethodNotImplementedError("This is no proxy."))
            self._is_upgrade = True
            return
        self._check_head(method)
        headers = self._headers
        by_name = index_headers(headers)
        if (b"host" not in by_name or len(by_name) != len(headers)) and self._limits.requires_host:
            self._check_host()
        path, query = self._parse_target()
        self._route = route = self._find_route(method, path)
        self._request = FastRequest(method, path, query, headers, b"", self._client, "1.1", by_name)
        if b"connection" in by_name or not parser.should_keep_alive():
            self._connection = self._choose_connection_line()
        else:
            self._connection = STAYS_OPEN
        if b"content-length" in by_name or b"transfer-encoding" in by_name or b"expect" in by_name:
            self._expect_body(by_name, route)

    def _parse_target(self) -> tuple[bytes, bytes]:
        url = self._url
        if url.startswith(b"/") and b"#" not in url:
            path, _, query = url.partition(b"?")
            return path, query
        if url == b"*":
            return url, b""
        try:
            parsed = httptools.parse_url(url)
        except httptools.HttpParserInvalidURLError as error:
            raise self._reject(BadRequestError("The target of the request is not a URL.")) from error
        return parsed.path or b"/", parsed.query or b""

    def _choose_connection_line(self) -> bytes:
        self._request.version = version = self._parser.get_http_version()
        # Of the versions that the parser knows, only these differ from 1.1 in what stays open.
        if version not in _VERSIONS:
            raise self._reject(
                HttpVersionNotSupportedError(f"HTTP/{version} is not spoken here: use HTTP/1.1.")
            )
        if not self._parser.should_keep_alive():
            return CLOSES
        return STAYS_OPEN if version == "1.1" else STAYS_OPEN_FOR_1_0

    def _check_head(self, method: bytes) -> None:
        limits = self._limits
        if len(self._url) + len(method) + _LINE_EXTRA_BYTES > limits.request_line_bytes_max:
            raise self._reject(_make_line_error(limits))
        if len(self._headers) > limits.header_count_max:
            raise self._reject(_make_header_error(limits))
        if self._phase_bytes > self._unmeasured_bytes_max:
            header_bytes = sum(len(name) + len(value) + _HEADER_EXTRA_BYTES for name, value in self._headers)
            if header_bytes > limits.header_bytes_max:
                raise self._reject(_make_header_error(limits))

    def _check_host(self) -> None:
        hosts = sum([name == b"host" for name, _ in self._headers])
        if hosts > 1 or (not hosts and self._parser.get_http_version() == "1.1"):
            raise self._reject(BadRequestError("A request has exactly one Host header."))

    def _expect_body(self, by_name: dict[bytes, bytes], route: FastRoute | None) -> None:
        """Bound the body, and send 100 Continue if the client waits for it."""
        self.phase = _BODY
        self.phase_since = self._now
        self._phase_bytes = 0
        self._is_phase_new = True
        self._headers = []  # Trailers go there, and nowhere.
        self._body_bytes_max = self._limits.body_bytes_max if route is None else route.body_bytes_max
        length, encoding = by_name.get(b"content-length"), by_name.get(b"transfer-encoding")
        if length is not None and int(length) > self._body_bytes_max:
            raise self._reject(self._make_body_error())
        if encoding is not None and encoding.lower() != b"chunked":
            raise self._reject(BadRequestError("The only transfer encoding understood here is chunked."))
        expectation = by_name.get(b"expect")
        if expectation is None or self._request.version == "1.0":
            return
        if expectation.lower() != b"100-continue":
            raise self._reject(ExpectationFailedError("The only expectation met here is 100-continue."))
        if route is not None and route.fixed_rejection is not None:
            self._refusal = RequestRejectedError(route.fixed_rejection)
            raise self._refusal
        self._on_expectation()

    def _make_body_error(self) -> BodyTooLargeError:
        return BodyTooLargeError(f"The body may have at most {self._body_bytes_max} bytes.")

    def on_body(self, body: bytes) -> None:
        if not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body
        if len(self._body) > self._body_bytes_max:
            raise self._reject(self._make_body_error())

    def on_message_complete(self) -> None:
        """Pass the request on; nothing is parsed after one that closes its connection."""
        if self._is_upgrade or self.is_finished:
            return
        self.phase = _IDLE
        self.phase_since = self._now
        if self._body:
            self._request.body = bytes(self._body)
        connection = self._connection
        if connection is CLOSES:
            self.is_finished = True
        self._on_request(self._request, self._route, connection)


def _make_line_error(limits: Limits) -> UriTooLongError:
    return UriTooLongError(f"The request line may have at most {limits.request_line_bytes_max} bytes.")


def _make_header_error(limits: Limits) -> HeadersTooLargeError:
    return HeadersTooLargeError(
        f"At most {limits.header_count_max} headers of together {limits.header_bytes_max} bytes are read."
    )


def _make_rejection(error: httptools.HttpParserError) -> RequestRejectedError:
    if isinstance(error, httptools.HttpParserCallbackError):
        log.error("request_reading_failed", exc_info=error)
        return RequestRejectedError(INTERNAL_FAILURE)
    return find_rejection(BadRequestError("This is not an HTTP/1.1 request."))
