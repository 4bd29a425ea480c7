"""No stream of bytes crashes the server, hangs a connection, or mixes up two answers."""

import time
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import RunningServer
from tests.support.http_wire import ClosedError, Wire

# Other limits are longer than the client's timeout, so a connection that hangs fails the test.
LIMITS = Limits(
    header_bytes_max=4096,
    parse_bytes_max=64,
    header_seconds_max=0.2,
    body_seconds_max=0.2,
    keep_alive_seconds_max=0.2,
)

with_server = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer(LIMITS)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def patient_server() -> Iterator[RunningServer]:
    """A server that never times out while small pieces arrive."""
    running = RunningServer(Limits(parse_bytes_max=64))
    running.start()
    yield running
    running.stop()


class Sent(msgspec.Struct, frozen=True):
    """A valid request, and what its answer must contain."""

    data: bytes
    echoed: bytes
    is_head: bool = False


paths = st.tuples(
    st.sampled_from(["/echo/", "/later/", "/given/", "/app/", "/gathered/", "/gathered/given/"]),
    st.text("abcdefgh0123456789%-_.", max_size=12),
).map(lambda parts: "".join(parts).encode())
queries = st.text("abc=&?0123", max_size=8).map(str.encode)
bodies = st.binary(max_size=300)
header_lines = st.lists(
    st.sampled_from(
        [
            b"Host: a.example\r\n",
            b"X-Content-Length: 7\r\n",
            b"Connection: keep-alive\r\n",
            b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
            b"Accept:\r\n",
            b"X-Long: " + b"y" * 90 + b"\r\n",
        ]
    ),
    max_size=4,
    unique=True,
).map(b"".join)


@st.composite
def gets(draw: st.DrawFn) -> Sent:
    method = draw(st.sampled_from([b"GET", b"HEAD"]))
    target = draw(paths) + b"?" + draw(queries)
    data = method + b" " + target + b" HTTP/1.1\r\n" + draw(header_lines) + b"\r\n"
    return Sent(data, method + b" " + target + b" ", is_head=method == b"HEAD")


@st.composite
def posts(draw: st.DrawFn) -> Sent:
    target = draw(paths) + b"?" + draw(queries)
    body = draw(bodies)
    if draw(st.booleans()):
        framing = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    else:
        chunks = [body[start : start + 100] for start in range(0, len(body), 100)]
        framing = b"Transfer-Encoding: chunked\r\n\r\n"
        framing += b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    data = b"POST " + target + b" HTTP/1.1\r\n" + draw(header_lines) + framing
    return Sent(data, b"POST " + target + b" " + body)


requests = st.one_of(gets(), posts())
cuts = st.lists(st.integers(0, 2000), max_size=6)


def pieces_of(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, *(place % (len(data) + 1) for place in at), len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def send_in_pieces(wire: Wire, data: bytes, at: list[int]) -> None:
    for piece in pieces_of(data, at):
        try:
            wire.send(piece)
        except ConnectionError:
            return
        time.sleep(0.001)


def assert_still_answers(server: RunningServer) -> None:
    with server.connect() as wire:
        assert wire.send(b"GET /echo/alive HTTP/1.1\r\n\r\n").answer().body == b"GET /echo/alive? "
    assert server.faults == []


@with_server
@given(sent=st.lists(requests, min_size=1, max_size=8), at=cuts)
def test_valid_requests_get_their_own_answers_in_order(
    patient_server: RunningServer, sent: list[Sent], at: list[int]
) -> None:
    with patient_server.connect() as wire:
        send_in_pieces(wire, b"".join(request.data for request in sent), at)

        for request in sent:
            answer = wire.answer(to_head=request.is_head)

            assert answer.status == 200
            assert answer.body.removeprefix(b"app ") == (b"" if request.is_head else request.echoed)
        assert wire.end().rest() == b""


@with_server
@given(data=st.binary(max_size=2000), at=cuts)
def test_random_bytes_do_not_leave_a_connection_open(
    server: RunningServer, data: bytes, at: list[int]
) -> None:
    with server.connect() as wire:
        send_in_pieces(wire, data, at)
        wire.rest()

    assert_still_answers(server)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Valid requests with some bytes replaced, removed or inserted."""
    data = b"".join(request.data for request in draw(st.lists(requests, min_size=1, max_size=4)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        removed = draw(st.integers(0, 3))
        added = draw(
            st.one_of(
                st.binary(max_size=3),
                st.sampled_from(
                    [b"\r\n", b"\r\n\r\n", b"\n", b"0\r\n\r\n", b"Content-Length: 3\r\n", b" ", b":"]
                ),
            )
        )
        data = data[:place] + added + data[place + removed :]
    return data


def answers_of(wire: Wire) -> list[tuple[int, bytes]]:
    """Read whole answers until the server closes; anything else fails."""
    received = wire.rest()
    answers: list[tuple[int, bytes]] = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 ")
        length = next(
            (int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: ")), 0
        )
        body, received = received[:length], received[length:]
        assert len(body) == length
        answers.append((int(head[9:12]), body))
    return answers


@with_server
@given(first=st.lists(posts(), min_size=1, max_size=3), broken=mutated(), at=cuts)
def test_broken_requests_never_change_the_answers_before_them(
    server: RunningServer, first: list[Sent], broken: bytes, at: list[int]
) -> None:
    data = b"".join(request.data for request in first) + broken.replace(b"HEAD", b"GET")
    with server.connect() as wire:
        send_in_pieces(wire, data, at)
        answers = answers_of(wire)

    assert [(status, body.removeprefix(b"app ")) for status, body in answers[: len(first)]] == [
        (200, request.echoed) for request in first
    ]
    assert all(
        status in {100, 200, 204, 400, 405, 408, 413, 414, 417, 431, 501, 505} for status, _ in answers
    )
    assert_still_answers(server)


@with_server
@given(data=mutated(), at=cuts)
def test_clients_that_leave_in_the_middle_break_nothing(
    server: RunningServer, data: bytes, at: list[int]
) -> None:
    with server.connect() as wire:
        send_in_pieces(wire, data, at)

    assert_still_answers(server)


def test_a_truncated_answer_is_detected(server: RunningServer) -> None:
    with server.connect() as wire, pytest.raises(ClosedError):
        wire.send(b"GET /echo/ HTTP/1.1\r\nConnection: close\r\n\r\n").answer()
        wire.answer()
