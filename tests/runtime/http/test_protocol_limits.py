"""Every limit on size: just within it is answered, just beyond it is refused with its code."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import RunningServer
from tests.support.http_wire import Wire, WireAnswer

LIMITS = Limits(
    request_line_bytes_max=100,
    header_bytes_max=200,
    header_count_max=5,
    body_bytes_max=2000,
    parse_bytes_max=64,
    discard_bytes_max=100_000,
)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer(LIMITS)
    running.start()
    yield running
    running.stop()


def assert_refused(wire: Wire, answer: WireAnswer, status: int, code: str) -> None:
    assert answer.status == status
    assert answer.headers["connection"] == "close"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert json.loads(answer.body)["errorCode"] == code
    assert wire.rest() == b""


def slowly(wire: Wire, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        wire.send(data[start : start + size])
        time.sleep(0.001)


def a_line_of(size: int) -> bytes:
    return b"GET /echo/" + b"x" * (size - 19) + b" HTTP/1.1"


@pytest.mark.parametrize("piece_bytes", [7, 10_000])
def test_a_request_line_at_its_limit_is_read(wire: Wire, piece_bytes: int) -> None:
    slowly(wire, a_line_of(100) + b"\r\n\r\n", piece_bytes)

    assert wire.answer().status == 200


@pytest.mark.parametrize("piece_bytes", [7, 10_000])
@pytest.mark.parametrize("size", [101, 1000, 9000])
def test_a_request_line_over_its_limit_is_refused(wire: Wire, size: int, piece_bytes: int) -> None:
    slowly(wire, a_line_of(size) + b"\r\n\r\n", max(piece_bytes, size // 100))

    assert_refused(wire, wire.answer(), 414, "URI_TOO_LONG")


def test_an_endless_request_line_is_refused(wire: Wire) -> None:
    wire.send(b"GET /" + b"x" * 5000)

    assert_refused(wire, wire.answer(), 414, "URI_TOO_LONG")


def headers_of(size: int) -> bytes:
    return b"GET /echo/ HTTP/1.1\r\nX: " + b"y" * (size - 5) + b"\r\n\r\n"


@pytest.mark.parametrize("piece_bytes", [7, 10_000])
def test_headers_at_their_limit_are_read(wire: Wire, piece_bytes: int) -> None:
    slowly(wire, headers_of(200), piece_bytes)

    assert wire.answer().status == 200


@pytest.mark.parametrize("piece_bytes", [7, 10_000])
@pytest.mark.parametrize("size", [202, 1000, 9000])
def test_headers_over_their_limit_are_refused(wire: Wire, size: int, piece_bytes: int) -> None:
    slowly(wire, headers_of(size), max(piece_bytes, size // 100))

    assert_refused(wire, wire.answer(), 431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize("head", [b"X: " + b"y" * 5000, b"y" * 5000, b"X: y\r\n" * 5000])
def test_endless_headers_are_refused(wire: Wire, head: bytes) -> None:
    wire.send(b"GET /echo/ HTTP/1.1\r\n" + head)

    assert_refused(wire, wire.answer(), 431, "HEADERS_TOO_LARGE")


def test_the_number_of_headers_is_limited(wire: Wire) -> None:
    wire.send(b"GET /echo/ HTTP/1.1\r\n" + b"X: y\r\n" * 5 + b"\r\n")
    wire.send(b"GET /echo/ HTTP/1.1\r\n" + b"X: y\r\n" * 6 + b"\r\n")

    assert wire.answer().status == 200
    assert_refused(wire, wire.answer(), 431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize(("path", "size"), [(b"/echo", 1000), (b"/app/", 2000)])
def test_a_body_at_the_limit_of_its_route_is_read(wire: Wire, path: bytes, size: int) -> None:
    wire.send(b"POST " + path + b" HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

    assert wire.answer().body.endswith(b"x" * size)


@pytest.mark.parametrize(("path", "size"), [(b"/echo", 1001), (b"/app/", 2001), (b"/app/", 10**15)])
def test_a_body_over_the_limit_of_its_route_is_refused_by_its_length(
    wire: Wire, path: bytes, size: int
) -> None:
    wire.send(b"POST " + path + b" HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size)

    assert_refused(wire, wire.answer(), 413, "BODY_TOO_LARGE")


def test_a_refusal_reaches_a_client_that_is_still_sending(server: RunningServer) -> None:
    body = b"x" * 90_000
    for _ in range(20):
        with server.connect() as wire:
            wire.send(b"POST /echo HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)).send(body)

            assert_refused(wire, wire.answer(), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("path", [b"/echo", b"/gathered/", b"/app/"])
def test_a_client_that_reads_only_after_ten_megabytes_gets_its_refusal(
    start_server: Callable[[Limits], RunningServer], path: bytes
) -> None:
    server, body = start_server(Limits()), b"x" * 10_000_000

    for _ in range(5):
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
            connection.request("POST", path.decode(), body=body)

            assert connection.getresponse().status == 413
        with server.connect() as wire:
            wire.send(b"POST " + path + b" HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)).send(body)

            assert_refused(wire, wire.answer(), 413, "BODY_TOO_LARGE")


def test_a_client_that_does_not_stop_sending_is_disconnected(wire: Wire) -> None:
    wire.send(b"POST /echo HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n")

    assert wire.send_some(b"x" * 20_000_000) < 20_000_000


@pytest.mark.parametrize(("path", "size"), [(b"/echo", 1000), (b"/app/", 2000)])
@pytest.mark.parametrize("chunk_bytes", [1, 50, 5000])
def test_a_chunked_body_is_read_up_to_the_limit_of_its_route(
    wire: Wire, path: bytes, size: int, chunk_bytes: int
) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    full, rest = divmod(size, chunk_bytes)
    body = b"%x\r\n%b\r\n" % (chunk_bytes, b"x" * chunk_bytes) * full
    body += b"%x\r\n%b\r\n" % (rest, b"x" * rest) if rest else b""

    wire.send(head + body + b"0\r\n\r\n")
    assert wire.answer().body.endswith(b" " + b"x" * size)

    wire.send(head + body + b"1\r\nx\r\n")
    assert_refused(wire, wire.answer(), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    "rest",
    [b"1;" + b"e" * 5000, b"0\r\nX: " + b"y" * 5000, b"0\r\n" + b"X: y\r\n" * 1000],
    ids=["chunk extension", "trailer", "trailers"],
)
def test_chunk_headers_and_trailers_are_limited(wire: Wire, rest: bytes) -> None:
    wire.send(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + rest)

    assert_refused(wire, wire.answer(), 431, "HEADERS_TOO_LARGE")


def test_the_default_limits_fit_requests_of_browsers(start_server: Callable[[Limits], RunningServer]) -> None:
    server = start_server(Limits())
    cookie = b"Cookie: " + b"c" * 8000 + b"\r\n"
    with server.connect() as wire:
        wire.send(b"GET /echo/" + b"q" * 8000 + b" HTTP/1.1\r\n" + cookie + b"A: b\r\n" * 99 + b"\r\n")

        assert wire.answer().status == 200
