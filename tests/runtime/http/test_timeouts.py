"""The control plane's connections: a request that does not arrive times out."""

import json
import time
from collections.abc import Iterator

import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from adloom.runtime.http.server import TimeoutProtocol
from tests.support.echo_server import RunningServer

SECONDS_MAX = 0.2
LONG_SECONDS = 2.5


class ShortTimeoutProtocol(TimeoutProtocol):
    head_seconds_max = SECONDS_MAX
    head_bytes_max = 10_000
    body_seconds_max = SECONDS_MAX


@pytest.fixture
def server() -> Iterator[RunningServer]:
    server = RunningServer(Limits())
    server.config.http = ShortTimeoutProtocol
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /app/ HTTP/1.1\r\nA: b",
        b"POST /app/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
        b"GET /app/ HTTP/1.1\r\n\r\nGET /app/ HTTP/1.1\r\nA: b",
    ],
)
def test_a_request_that_does_not_arrive_times_out(server: RunningServer, beginning: bytes) -> None:
    with server.connect() as wire:
        begun = time.monotonic()
        if b"\r\n\r\nGET" in beginning:
            wire.send(beginning).answer()
        else:
            wire.send(beginning)

        assert wire.rest() == b""
        assert time.monotonic() - begun > SECONDS_MAX * 0.5


@pytest.mark.parametrize(
    "request_head", [b"GET /app/?device=" + b"0" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"\0\r\n\r\n"]
)
def test_what_cannot_be_parsed_is_answered_as_every_error(server: RunningServer, request_head: bytes) -> None:
    with server.connect() as wire:
        head, _, body = wire.send(request_head).rest().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json\r\n" in head
    assert json.loads(body)["errorCode"] == "BAD_REQUEST"


def test_endless_headers_are_disconnected(server: RunningServer) -> None:
    with server.connect() as wire, pytest.raises(OSError, match=r"reset|pipe"):
        wire.send(b"GET /app/ HTTP/1.1\r\nA: ")
        for _ in range(100):
            wire.send(b"a" * 10_000)
            time.sleep(0.001)


def test_a_connection_in_use_is_never_disconnected(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than a busy machine pauses, and shorter than the whole test.
    monkeypatch.setattr(ShortTimeoutProtocol, "head_seconds_max", LONG_SECONDS)
    with server.connect() as wire:
        for _ in range(3):
            assert wire.send(b"GET /app/ HTTP/1.1\r\nHost: x\r\n\r\n").answer().status == 200
            time.sleep(LONG_SECONDS * 0.4)

        answer = wire.send(b"POST /app/slower HTTP/1.1\r\nContent-Length: 2\r\n\r\nab").answer()

        assert answer.body.endswith(b"ab")
