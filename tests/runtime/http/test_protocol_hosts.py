"""What RFC 9112 asks of a request's version and host, and bounds on connections and on one turn of the loop."""

import json
from collections.abc import Callable, Iterator

import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import RunningServer
from tests.support.http_wire import ClosedError, Wire
from tests.support.product import wait_until

HOST = b"host: a\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer(Limits(), requires_host=True)
    running.start()
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("version", "headers", "status", "code"),
    [
        (b"1.1", HOST, 200, None),
        (b"1.1", HOST + b"x: 1\r\nx: 2\r\n", 200, None),
        (b"1.1", b"", 400, "BAD_REQUEST"),
        (b"1.1", HOST + HOST, 400, "BAD_REQUEST"),
        (b"1.1", HOST + b"HOST: b\r\n", 400, "BAD_REQUEST"),
        (b"1.0", b"", 200, None),
        (b"1.0", HOST + HOST, 400, "BAD_REQUEST"),
        (b"2.0", HOST, 505, "HTTP_VERSION_NOT_SUPPORTED"),
        (b"2.0", HOST + b"connection: keep-alive\r\n", 505, "HTTP_VERSION_NOT_SUPPORTED"),
        (b"0.9", HOST, 505, "HTTP_VERSION_NOT_SUPPORTED"),
        (b"3.0", HOST, 400, "BAD_REQUEST"),
    ],
)
def test_a_request_has_a_version_that_is_spoken_and_one_host(
    wire: Wire, version: bytes, headers: bytes, status: int, code: str | None
) -> None:
    answer = wire.send(b"GET /echo/a HTTP/%b\r\n%b\r\n" % (version, headers)).answer()

    assert answer.status == status
    if code is not None:
        assert json.loads(answer.body)["errorCode"] == code


def test_connections_beyond_the_bound_are_closed(start_server: Callable[[Limits], RunningServer]) -> None:
    server = start_server(Limits(connections_max=3))
    request = b"GET /echo/a HTTP/1.1\r\n\r\n"
    with server.connect() as first, server.connect() as second, server.connect() as third:
        assert [one.send(request).answer().status for one in (first, second, third)] == [200] * 3

        with server.connect() as beyond, pytest.raises((ClosedError, ConnectionError)):
            beyond.send(request).answer()
        assert first.send(request).answer().status == 200
    wait_until(lambda: not server.server_state.connections, seconds=30, what="room for others")
    with server.connect() as later:
        assert later.send(request).answer().status == 200


def test_a_long_pipeline_is_answered_whole_and_other_connections_have_their_turn(
    start_server: Callable[[Limits], RunningServer],
) -> None:
    server = start_server(Limits(parse_bytes_max=64, turn_bytes_max=128, write_buffer_bytes_max=2**20))
    count = 400
    with server.connect() as greedy, server.connect() as other:
        greedy.send(b"GET /echo/a HTTP/1.1\r\n\r\n" * count)
        assert other.send(b"GET /echo/b HTTP/1.1\r\n\r\n").answer().status == 200

        assert [greedy.answer().status for _ in range(count)] == [200] * count
