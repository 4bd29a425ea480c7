"""Every limit on time: one limit is short, and the others are longer than the client's timeout."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import RunningServer
from tests.support.http_wire import READ_SECONDS_MAX, ClosedError, Wire
from tests.support.product import wait_until


def short(limits: Limits) -> pytest.MarkDecorator:
    """Start a server with one short limit, which must be the one that ends the connection."""
    return pytest.mark.parametrize("server", [limits], indirect=True, ids=["short"])


short_header = short(Limits(header_seconds_max=0.3))
short_body = short(Limits(body_seconds_max=0.35))
short_keep_alive = short(Limits(keep_alive_seconds_max=0.4))
short_answer = short(Limits(answer_seconds_max=0.6))
short_write = short(Limits(write_seconds_max=0.3))


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    running = RunningServer(request.param)
    running.start()
    yield running
    running.stop()


class Elapsed:
    """Seconds since it was created."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def is_at_least(self, seconds: float) -> bool:
        return seconds - 0.02 <= time.monotonic() - self._begun


def works(server: RunningServer, use: Callable[[Wire], None]) -> None:
    """Use a connection in time; a busy machine may be too late, and tries again with the next."""
    for tries_left in reversed(range(10)):
        try:
            with server.connect() as wire:
                use(wire)
        except (AssertionError, ClosedError, OSError):
            if not tries_left:
                raise
        else:
            return


@short_header
def test_headers_that_do_not_end_time_out(wire: Wire) -> None:
    elapsed = Elapsed()

    answer = wire.send(b"GET /echo/ HTTP/1.1\r\nHost:").answer()

    assert elapsed.is_at_least(0.3)
    assert answer.status == 408
    assert answer.headers["connection"] == "close"
    assert json.loads(answer.body)["errorCode"] == "REQUEST_TIMEOUT"
    assert wire.rest() == b""


@short_header
def test_headers_sent_byte_by_byte_time_out(wire: Wire) -> None:
    elapsed = Elapsed()
    for byte in b"GET /echo/ HTTP":
        wire.send(bytes([byte]))
        time.sleep(0.015)

    assert wire.answer().status == 408
    assert elapsed.is_at_least(0.3)


@short_body
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc"]
)
@pytest.mark.parametrize("path", [b"/echo", b"/app/"])
def test_a_body_that_does_not_end_times_out(wire: Wire, path: bytes, framing: bytes) -> None:
    elapsed = Elapsed()

    answer = wire.send(b"POST " + path + b" HTTP/1.1\r\n" + framing).answer()

    assert elapsed.is_at_least(0.35)
    assert answer.status == 408
    assert wire.rest() == b""


@short_keep_alive
def test_an_idle_connection_is_closed_without_an_answer(server: RunningServer) -> None:
    elapsed = Elapsed()

    with server.connect() as wire:
        assert wire.rest() == b""
    assert elapsed.is_at_least(0.4)


@short_keep_alive
@pytest.mark.parametrize("path", [b"/echo/", b"/later/", b"/given/", b"/app/", b"/gathered/"])
def test_an_answered_connection_is_closed_after_its_idle_time(wire: Wire, path: bytes) -> None:
    time.sleep(0.1)
    elapsed = Elapsed()
    wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\n").answer()

    assert wire.rest() == b""
    assert elapsed.is_at_least(0.4)


@short_keep_alive
def test_empty_lines_do_not_keep_a_connection_open(server: RunningServer) -> None:
    elapsed = Elapsed()
    with server.connect() as wire:
        for _ in range(10):
            wire.send(b"\r\n")
            time.sleep(0.01)

        assert wire.rest() == b""
    assert elapsed.is_at_least(0.4)


@short_keep_alive
def test_a_connection_in_use_is_never_closed(server: RunningServer) -> None:
    def use(wire: Wire) -> None:
        for number in range(5):
            answer = wire.send(b"GET /echo/%d HTTP/1.1\r\n\r\n" % number).answer()
            time.sleep(0.1)

            assert answer.body == b"GET /echo/%d? " % number

    works(server, use)


@short_header
def test_the_timeout_starts_again_with_the_second_request(server: RunningServer) -> None:
    def ask_twice(wire: Wire) -> None:
        for _ in range(2):
            wire.send(b"GET /echo/ HTTP/1.1\r\n")
            time.sleep(0.17)

            assert wire.send(b"\r\n").answer().status == 200

    works(server, ask_twice)


@short_body
def test_our_own_processing_time_does_not_count_against_the_client(server: RunningServer) -> None:
    def send_late(wire: Wire) -> None:
        wire.send(b"GET /slow HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n")
        wire.answer()
        time.sleep(0.1)

        assert wire.send(b"hi").answer().body == b"POST /echo? hi"

    works(server, send_late)


@short_answer
def test_a_missing_answer_times_out(wire: Wire) -> None:
    elapsed = Elapsed()

    answer = wire.send(b"GET /never HTTP/1.1\r\n\r\nGET /echo/ HTTP/1.1\r\n\r\n").answer()

    assert elapsed.is_at_least(0.6)
    assert answer.status == 503
    assert json.loads(answer.body)["errorCode"] == "UNAVAILABLE"
    assert wire.rest() == b""


@short_write
def test_a_client_that_stops_reading_is_disconnected(server: RunningServer) -> None:
    with server.connect() as wire:
        wire.send_some(b"GET /big HTTP/1.1\r\n\r\n" * 100_000)

        wait_until(lambda: not server.server_state.connections, seconds=READ_SECONDS_MAX, what="cut")


@short_keep_alive
def test_a_refused_client_that_stays_connected_is_disconnected(server: RunningServer) -> None:
    with server.connect() as wire:
        wire.send(b"nonsense\r\n\r\n").answer()

        wait_until(lambda: not server.server_state.connections, seconds=READ_SECONDS_MAX, what="cut")
