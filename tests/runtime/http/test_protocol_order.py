"""Many requests on one connection: split anywhere, pipelined, answered late, and still in order."""

import threading
import time
from collections.abc import Callable

import psutil
import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import BIG_BYTES, RunningServer
from tests.support.for_each import for_each
from tests.support.http_wire import ClosedError, Wire

PAIR = (
    b"POST /echo?1 HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\n\r\n"
    b"POST /echo?2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
)


@for_each("position", range(1, len(PAIR)))
def test_a_pair_of_requests_may_be_split_anywhere(server: RunningServer, position: int) -> None:
    with server.connect() as wire:
        wire.send(PAIR[:position])
        time.sleep(0.002)
        wire.send(PAIR[position:])

        assert wire.answer().body == b"POST /echo?1 abc"
        assert wire.answer().body == b"POST /echo?2 hi"


def test_requests_may_come_byte_by_byte(wire: Wire) -> None:
    requests = PAIR + b"GET /app/3 HTTP/1.1\r\n\r\nGET /later/4 HTTP/1.1\r\n\r\n"

    for byte in requests:
        wire.send(bytes([byte]))
        time.sleep(0.0005)

    assert wire.answer().body == b"POST /echo?1 abc"
    assert wire.answer().body == b"POST /echo?2 hi"
    assert wire.answer().body == b"app GET /app/3? "
    assert wire.answer().body == b"GET /later/4? "


def test_empty_lines_between_requests_are_skipped(wire: Wire) -> None:
    wire.send(b"\r\n\r\nGET /echo/1 HTTP/1.1\r\n\r\n\r\nGET /echo/2 HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"GET /echo/1? "
    assert wire.answer().body == b"GET /echo/2? "


def test_fast_slow_and_app_answers_are_sent_in_request_order(wire: Wire) -> None:
    paths = [
        b"/later/1",
        b"/echo/2",
        b"/app/slow",
        b"/given/4",
        b"/later/5",
        b"/given/now",
        b"/handed-on",
        b"/gathered/8",
        b"/gathered/given/9",
        b"/gathered/10",
        b"/gathered/handed-on",
        b"/gathered/given/now",
        b"/echo/13",
    ] * 3

    wire.send(b"".join(b"GET " + path + b" HTTP/1.1\r\n\r\n" for path in paths))

    for path in paths:
        assert wire.answer().body.endswith(b"GET " + path + b"? ")


def test_thousands_of_pipelined_requests_wait_for_a_late_answer(wire: Wire) -> None:
    count = 10_000
    requests = b"".join(b"GET /echo/%d HTTP/1.1\r\n\r\n" % number for number in range(count))

    sender = threading.Thread(target=wire.send, args=(b"GET /later/ HTTP/1.1\r\n\r\n" + requests,))
    sender.start()

    assert wire.answer().body == b"GET /later/? "
    for number in range(count):
        assert wire.answer().body == b"GET /echo/%d? " % number
    sender.join()


def test_a_malformed_request_is_refused_after_the_answers_before_it(wire: Wire) -> None:
    wire.send(b"GET /later/1 HTTP/1.1\r\n\r\nGET /app/slow HTTP/1.1\r\n\r\nnonsense\r\n\r\n")

    assert wire.answer().body == b"GET /later/1? "
    assert wire.answer().body == b"app GET /app/slow? "
    assert wire.answer().status == 400
    assert wire.rest() == b""


def test_a_malformed_request_that_comes_later_is_refused_in_request_order(wire: Wire) -> None:
    wire.send(b"GET /later/1 HTTP/1.1\r\n\r\n")
    time.sleep(0.005)
    wire.send(b"nonsense\r\n\r\n")

    assert wire.answer().body == b"GET /later/1? "
    assert wire.answer().status == 400
    assert wire.rest() == b""


@pytest.mark.parametrize("path", [b"/later/1", b"/given/1", b"/app/slow", b"/gathered/1"])
def test_a_client_that_has_closed_its_half_is_still_answered(wire: Wire, path: bytes) -> None:
    wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\nGET /echo/2 HTTP/1.1\r\n\r\n").end()

    assert wire.answer().body.endswith(b"GET " + path + b"? ")
    assert wire.answer().body == b"GET /echo/2? "
    assert wire.rest() == b""


@pytest.mark.parametrize(
    "path",
    [
        b"/later/1",
        b"/given/1",
        b"/app/slow",
        b"/never",
        b"/later-failing",
        b"/gathered/1",
        b"/gathered/given",
    ],
)
def test_a_client_that_leaves_early_breaks_nothing(server: RunningServer, path: bytes) -> None:
    for _ in range(20):
        with server.connect() as leaving:
            leaving.send(b"GET " + path + b" HTTP/1.1\r\n\r\nGET /echo/ HTTP/1.1\r\n\r\n")

    with server.connect() as wire:
        assert wire.send(b"GET /later/ HTTP/1.1\r\n\r\n").answer().body == b"GET /later/? "
    assert server.faults == []


def test_a_client_that_never_reads_costs_no_memory(
    start_server: Callable[[Limits], RunningServer],
) -> None:
    server = start_server(Limits(write_seconds_max=60))
    # More than the system's own buffers on both ends hold.
    requests = b"GET /big HTTP/1.1\r\n\r\n" * 5_000_000
    with server.connect() as wire:
        before = psutil.Process().memory_info().rss

        sent = wire.send_some(requests)

        grown = psutil.Process().memory_info().rss - before
        assert sent < len(requests)
        assert grown < 300 * BIG_BYTES


def test_a_client_that_reads_late_gets_every_answer(wire: Wire) -> None:
    count = 300
    wire.send(b"GET /big HTTP/1.1\r\n\r\n" * count + b"GET /echo/last HTTP/1.1\r\n\r\n")
    time.sleep(0.1)

    for _ in range(count):
        assert len(wire.answer().body) == BIG_BYTES
    assert wire.answer().body == b"GET /echo/last? "


def test_a_waiting_connection_does_not_block_another(server: RunningServer) -> None:
    with server.connect() as stuck, server.connect() as wire:
        stuck.send(b"GET /never HTTP/1.1\r\n\r\n")

        assert wire.send(b"GET /echo/ HTTP/1.1\r\n\r\n").answer().status == 200

    with pytest.raises(ClosedError), server.connect() as wire:
        wire.end().answer()
