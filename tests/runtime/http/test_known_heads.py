"""A request whose head was parsed before is the same request, whatever bytes it comes in."""

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.http.fast.errors import RequestRejectedError
from adloom.runtime.http.fast.fast_routes import (
    DEFAULT_LIMITS,
    FastAnswer,
    FastRequest,
    FastRoute,
    FastRoutes,
    encode_head,
    list_headers,
    read_forwarded,
)
from adloom.runtime.http.fast.known_heads import HEAD_BYTES_MAX, HEADS_MAX, Head, KnownHeads
from adloom.runtime.http.fast.request_parser import RequestParser
from tests.support.for_each import for_each

ANSWER = FastAnswer(encode_head(HTTPStatus.OK, None))
ROUTES = FastRoutes(
    [
        FastRoute(b"GET", b"/", is_prefix=True, handler=lambda _: ANSWER),
        FastRoute(b"POST", b"/small", is_prefix=False, handler=lambda _: ANSWER, body_bytes_max=2),
    ]
)

Parsed = tuple[bytes, bytes, bytes, list[tuple[bytes, bytes]], bytes | None, bytes, str, bytes]


class Sink:
    """Keeps what a parser passes on."""

    def __init__(self) -> None:
        self.requests: list[Parsed] = []
        self.heads: list[Head | None] = []

    def on_request(self, request: FastRequest, route: FastRoute | None, connection: bytes) -> None:
        del route
        self.heads.append(request.head)
        self.requests.append(
            (
                request.method,
                request.path,
                request.query,
                sorted(list_headers(request)),
                read_forwarded(request),
                request.body,
                request.version,
                connection,
            )
        )

    def on_expectation(self) -> None: ...


def parse(pieces: list[bytes], heads: KnownHeads) -> tuple[list[Parsed], FastAnswer | None, bool]:
    """Return the requests, the rejection, and whether the connection is finished."""
    sink = Sink()
    parser = RequestParser(sink, ROUTES, DEFAULT_LIMITS, "127.0.0.1", heads)
    for piece in pieces:
        if parser.is_finished:
            break
        try:
            parser.feed(piece, 0.0)
        except RequestRejectedError as refusal:
            return sink.requests, refusal.answer, True
    return sink.requests, None, parser.is_finished


class Forgetful(KnownHeads):
    """Remembers nothing."""

    def remember(self, lines: bytes, head: Head) -> None: ...


lines = st.sampled_from(
    [
        b"Host: a.example\r\n",
        b"host:a.example\r\n",
        b"Accept: */*\r\n",
        b"Accept: text/html \r\n",
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        b"Content-Length: 0\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Cookie: a=b\r\n",
        b"X-Forwarded-For: 1.2.3.4\r\n",
        b"X-Forwarded-For: 1.2.3.4, ::1\r\n",
        b"x-forwarded-for: 5.6.7.8\r\n",
        b"X-Forwarded-For: 1.2.3.4 \r\n",
        b"X-Forwarded-For: a\x00b\r\n",
        b"X-Forwarded-For: unknown\r\n",
        b"X-Folded: a\r\n b\r\n",
        b"X-Bare: a\n",
        b"X-Bare: a\nHost: b.example\n\nGET /b HTTP/1.1\r\n",
        b"\r\nGET /second HTTP/1.1\r\n",
        b"\n\nGET /second HTTP/1.1\r\n",
        b" : \r\n",
        b"X-Zero: \x00\r\n",
        b"X-Return: a\rb\r\n",
    ]
)
request_lines = st.sampled_from(
    [
        b"GET /a HTTP/1.1\r\n",
        b"GET /a?x=1 HTTP/1.1\r\n",
        b"GET /a?x=1?y HTTP/1.1\r\n",
        b"GET /a? HTTP/1.1\r\n",
        b"GET /a?x#y HTTP/1.1\r\n",
        b"GET /a?x=\x7f HTTP/1.1\r\n",
        b"GET /a?x y HTTP/1.1\r\n",
        b"GET /a?x HTTP/1.0\r\n",
        b"GET /a\x7f?x HTTP/1.1\r\n",
        b"HEAD /a?x HTTP/1.1\r\n",
        b"GET /a#b HTTP/1.1\r\n",
        b"GET /a HTTP/1.0\r\n",
        b"GET  /a HTTP/1.1\r\n",
        b"GET /a\x7f HTTP/1.1\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\n",
        b"GET /a HTTP/1.1\n",
        b"HEAD /a HTTP/1.1\r\n",
        b"POST /a HTTP/1.1\r\n",
        b"POST /small HTTP/1.1\r\n",
        b"GET http://a.example/a HTTP/1.1\r\n",
        b"\r\nGET /a HTTP/1.1\r\n",
    ]
)


def join_head(parts: tuple[bytes, list[bytes], bytes]) -> bytes:
    return parts[0] + b"".join(parts[1]) + parts[2]


heads = st.tuples(
    request_lines,
    st.lists(lines, max_size=4),
    st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\r\nabc", b"\r\nabc", b"\r\nabcd", b"\n", b""]),
).map(join_head)


# What one write brings: mostly one request, sometimes several.
pieces_read = st.one_of(heads, heads, st.lists(heads, min_size=2, max_size=3).map(b"".join))
connections = st.lists(pieces_read, min_size=1, max_size=4)


@given(connections, st.lists(connections, max_size=3))
def test_a_known_head_changes_no_request(pieces: list[bytes], before: list[list[bytes]]) -> None:
    known = KnownHeads()
    for earlier in [*before, pieces]:
        parse(earlier, known)

    again = [piece for piece in pieces for _ in range(3)]
    others = [
        piece.replace(b"1.2.3.4", value) for piece in again for value in (b"1.2.3.4", b"9.9.9.9", b"9\n")
    ]
    for sent in (pieces, again, others):
        assert parse(sent, known) == parse(sent, Forgetful())


@pytest.mark.parametrize("body", [b"", b"abc"])
def test_the_second_of_two_requests_in_one_piece_says_nothing_of_the_first(body: bytes) -> None:
    of_victim = b"Host: a.example\r\nUser-Agent: Chrome\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    of_attacker = b"Host: a.example\r\nUser-Agent: Googlebot\r\nConnection: close\r\n\r\n"
    victim = b"GET /a HTTP/1.1\r\n" + of_victim
    known = KnownHeads()

    parse([victim + b"GET /a HTTP/1.1\r\n" + of_attacker], known)

    assert parse([victim], known) == parse([victim], Forgetful())


def test_a_head_is_parsed_once() -> None:
    sink, known = Sink(), KnownHeads()
    parser = RequestParser(sink, ROUTES, DEFAULT_LIMITS, None, known)

    for path in (b"/a", b"/b?c=d"):
        parser.feed(b"GET %b HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n" % path, 0.0)

    assert [request[1:3] for request in sink.requests] == [(b"/a", b""), (b"/b", b"c=d")]
    assert [head is not None for head in sink.heads] == [False, True]


def test_the_head_of_a_post_is_parsed_once_for_bodies_of_one_length() -> None:
    sink, known = Sink(), KnownHeads()
    parser = RequestParser(sink, ROUTES, DEFAULT_LIMITS, None, known)
    head = b"POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\n"

    for piece in (head + b"abc", head + b"def", head, b"ghi", head + b"jklGET / HTTP/1.1\r\nHost: b\r\n\r\n"):
        parser.feed(piece, 0.0)

    assert [request[5] for request in sink.requests] == [b"abc", b"def", b"ghi", b"jkl", b""]
    assert [head is not None for head in sink.heads] == [False, True, False, False, False]


def test_heads_behind_a_proxy_are_parsed_once_whatever_the_address_of_its_client() -> None:
    sink, known = Sink(), KnownHeads()
    parser = RequestParser(sink, ROUTES, DEFAULT_LIMITS, None, known)
    head = b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: %b\r\nAccept: */*\r\n\r\n"

    for address in (b"1.1.1.1", b"2.2.2.2", b"3.3.3.3, 10.0.0.1"):
        parser.feed(head % address, 0.0)
        parser.feed(head % address, 0.0)

    forwarded = [request[4] for request in sink.requests]
    assert forwarded[::2] == forwarded[1::2] == [b"1.1.1.1", b"2.2.2.2", b"3.3.3.3, 10.0.0.1"]
    assert [head is not None for head in sink.heads] == [False, False, True, True, True, True]
    assert all(b"2.2.2.2" not in lines for lines in known._heads)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert len(known) == 1


def test_a_proxy_may_name_its_client_in_the_first_line() -> None:
    sink, known = Sink(), KnownHeads()
    parser = RequestParser(sink, ROUTES, DEFAULT_LIMITS, None, known)

    for number in range(1, 5):
        parser.feed(b"GET / HTTP/1.1\r\nX-Forwarded-For: 1.1.1.%d\r\nHost: a.example\r\n\r\n" % number, 0.0)

    assert [request[4] for request in sink.requests] == [b"1.1.1.%d" % number for number in range(1, 5)]
    assert [head is not None for head in sink.heads] == [False, False, True, True]


@for_each(
    "line",
    [
        "Cookie: a=b",
        "Authorization: Bearer a",
        "X-Api-Key: a",
        "X-Device-Id: a",
        "X-Forwarded-For: 1.2.3.4",
        "Forwarded: for=1.2.3.4",
        "X-Real-IP: 1.2.3.4",
        f"X-Long: {'a' * 2_000}",
    ],
)
def test_what_tells_who_somebody_is_and_what_is_long_is_not_kept(line: str) -> None:
    known = KnownHeads()

    parse([f"GET / HTTP/1.1\r\nHost: a.example\r\n{line}\r\n\r\n".encode()], known)

    assert len(known) == 0


def test_no_more_heads_are_kept_than_the_bound() -> None:
    known = KnownHeads()
    for number in range(HEADS_MAX + 10):
        parse([b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Number: %d\r\n\r\n" % number], known)

    assert len(known) == 10
    assert HEAD_BYTES_MAX * HEADS_MAX <= 4 * 1024 * 1024
