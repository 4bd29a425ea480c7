"""Stopping: idle connections close, requests that have arrived or are arriving are answered first."""

import threading
import time
from collections.abc import Callable

import pytest

from adloom.runtime.http.fast import protocol
from adloom.runtime.http.fast.fast_routes import Limits
from adloom.runtime.http.fast.protocol import LINGER_SECONDS
from tests.support.echo_server import RunningServer

StartServer = Callable[[Limits], RunningServer]


def stop_soon(server: RunningServer) -> None:
    """Stop the server when the request has arrived."""
    time.sleep(0.01)
    server.should_exit = True


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for what a busy test sends."""
    monkeypatch.setattr(protocol, "DRAIN_SECONDS_MAX", 30.0)


@pytest.mark.usefixtures("_patient")
def test_idle_connections_close_before_those_with_a_partial_request(start_server: StartServer) -> None:
    server = start_server(Limits())
    with server.connect() as fresh, server.connect() as used, server.connect() as busy:
        used.send(b"GET /echo/ HTTP/1.1\r\n\r\n").answer()
        time.sleep(LINGER_SECONDS + 0.1)
        busy.send(b"GET /echo/ HTTP/1.1\r\n")
        stop_soon(server)

        assert fresh.rest() == b""
        assert used.rest() == b""
        assert busy.send(b"\r\n").answer().body == b"GET /echo/? "


def test_a_connection_in_use_gets_one_more_answer(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 3.0)
    server = start_server(Limits())
    with server.connect() as wire, server.connect() as silent:
        wire.send(b"GET /echo/1 HTTP/1.1\r\n\r\n").answer()
        silent.send(b"GET /echo/1 HTTP/1.1\r\n\r\n").answer()
        server.should_exit = True
        time.sleep(0.25)

        answer = wire.send(b"GET /echo/2 HTTP/1.1\r\n\r\n").answer()

        assert (answer.body, answer.headers["connection"]) == (b"GET /echo/2? ", "close")
        assert wire.rest() == b""
        assert silent.rest() == b"", "a connection without a new request is not waited for"


@pytest.mark.parametrize("path", [b"/slow", b"/app/slower"])
def test_a_request_in_progress_is_answered_with_close(start_server: StartServer, path: bytes) -> None:
    server = start_server(Limits())
    with server.connect() as wire:
        wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\n")
        stop_soon(server)

        answer = wire.answer()

        assert answer.body.endswith(b"GET " + path + b"? ")
        assert answer.headers["connection"] == "close"
        assert wire.rest() == b""


def test_all_pipelined_requests_are_answered_and_only_the_last_with_close(start_server: StartServer) -> None:
    server = start_server(Limits())
    with server.connect() as wire:
        wire.send(b"GET /slow HTTP/1.1\r\n\r\nGET /app/2 HTTP/1.1\r\n\r\nGET /echo/3 HTTP/1.1\r\n\r\n")
        stop_soon(server)

        answers = [wire.answer() for _ in range(3)]

        assert [answer.headers.get("connection") for answer in answers] == [None, None, "close"]
        assert answers[2].body == b"GET /echo/3? "
        assert wire.rest() == b""


@pytest.mark.usefixtures("_patient")
def test_a_partly_received_request_may_still_arrive(start_server: StartServer) -> None:
    server = start_server(Limits())
    with server.connect() as wire:
        wire.send(b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\nh")
        stop_soon(server)
        time.sleep(0.2)

        answer = wire.send(b"i").answer()

        assert answer.body == b"POST /echo? hi"
        assert answer.headers["connection"] == "close"
        assert wire.rest() == b""


def test_an_incomplete_request_does_not_delay_the_stop(start_server: StartServer) -> None:
    server = start_server(Limits())
    with server.connect() as wire, server.connect() as refused:
        wire.send(b"GET /echo/ HTTP")
        refused.send(b"nonsense\r\n\r\n").answer()

        stopping = threading.Thread(target=server.stop)
        stopping.start()

        assert wire.rest() == b""
        stopping.join()


@pytest.mark.usefixtures("_patient")
def test_no_request_is_started_after_an_answer_with_close(start_server: StartServer) -> None:
    server = start_server(Limits())
    with server.connect() as wire:
        wire.send(b"GET /echo/1 HTTP/1.1\r\n")
        stop_soon(server)
        time.sleep(0.2)

        answer = wire.send(b"\r\nGET /echo/2 HTTP/1.1\r\n\r\nGET /app/3 HTTP/1.1\r\n\r\n").answer()

        assert answer.body == b"GET /echo/1? "
        assert answer.headers["connection"] == "close"
        assert wire.rest() == b""
        assert server.server_state.total_requests == 1
