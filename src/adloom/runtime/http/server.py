"""Runs uvicorn on a socket that is there already, with timeouts, and stops it without losing what is under way."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Generator
from email.utils import formatdate
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adloom.core.errors import BadRequestError
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE, encode_problem
from adloom.runtime.loops import pause_until_next


class TimeoutProtocol(HttpToolsProtocol):
    """A connection that is cut when a request does not arrive in time, or its head has no end."""

    head_seconds_max: ClassVar[float] = 10.0
    head_bytes_max: ClassVar[int] = 64 * 1024
    body_seconds_max: ClassVar[float] = 60.0

    _deadline: asyncio.TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  uvicorn narrows it so
        super().connection_made(transport)
        self._expect(self.head_seconds_max)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > self.head_bytes_max:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        self._expect(self.head_seconds_max)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._expect(self.body_seconds_max)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the clock: the time for the answer is ours."""
        self._cancel_deadline()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed in the form of all errors."""
        del msg
        body = encode_problem(
            BadRequestError("This is not HTTP that can be read, or its address is too long.")
        )
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n"
        self.transport.write(head % (PROBLEM_CONTENT_TYPE.encode(), len(body)))
        self.transport.write(b"".join(b"%b: %b\r\n" % one for one in self.server_state.default_headers))
        self.transport.write(b"\r\n" + body)
        self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """Stop the clock: a web socket may be idle for as long as it likes."""
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def _expect(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
KEEP_ALIVE_SECONDS_MAX = 30
DATE_SECONDS = 1.0  # How often the date of answers is written anew.
# A listening socket yields one connection per tick, and ticks of a busy process are long. Each copy yields one more.
CONNECTIONS_PER_TICK = 8
WEB_SOCKET_BYTES_MAX = 1024 * 1024  # What people type into a form is far from it.


class _Connections(set[Any]):
    """The open connections; the first is reported before it is served."""

    def __init__(self, begin: Callable[[], None]) -> None:
        super().__init__()
        self._begin = begin

    def add(self, connection: object, /) -> None:
        if not self:
            self._begin()
        super().add(connection)


class GracefulServer(uvicorn.Server):
    """Stops on a signal and returns, where uvicorn would send itself the signal again.

    What surrounds the server (the appender, the pools) has to be closed after it, in order. What would
    never end by itself is ended by `before_drain`.
    """

    def __init__(self, config: uvicorn.Config, *, before_drain: Callable[[], None] | None = None) -> None:
        super().__init__(config)
        self._before_drain = before_drain
        self._is_told_to_stop = asyncio.Event()
        self._is_wanted = asyncio.Event()  # There is a connection, or a stop.
        self.server_state.connections = _Connections(self._begin)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish the requests that have begun; a second signal does not wait for them."""
        del sig, frame
        self.force_exit = self.should_exit
        self.should_exit = True
        self._is_told_to_stop.set()
        self._is_wanted.set()

    async def main_loop(self) -> None:
        """Wait for the stop. uvicorn looks for it ten times a second, which is most of what an idle process does."""
        while not self.should_exit:
            self._write_date()
            if self.server_state.connections:
                await pause_until_next(DATE_SECONDS, self._is_told_to_stop)
            else:
                self._is_wanted.clear()
                await self._is_wanted.wait()

    def _begin(self) -> None:
        """Write the date for the first connection, and go on with it while there are any."""
        self._write_date()
        self._is_wanted.set()

    def _write_date(self) -> None:
        now = formatdate(usegmt=True).encode()
        self.server_state.default_headers = [(b"date", now), *self.config.encoded_headers]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._before_drain is not None:
            self._before_drain()
        await super().shutdown(sockets)


async def serve(  # noqa: PLR0913 - what servers differ in
    app: ASGIApp,
    listener: socket.socket,
    *,
    drain_seconds_max: int,
    protocol: type[asyncio.Protocol] = TimeoutProtocol,
    has_lifespan: bool = False,
    has_web_sockets: bool = False,
    before_drain: Callable[[], None] | None = None,
) -> None:
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio" if has_web_sockets else "none",
        ws_max_size=WEB_SOCKET_BYTES_MAX,
        lifespan="on" if has_lifespan else "off",
        # Logs are written in one place, `runtime.telemetry.logs`.
        log_config=None,
        access_log=False,
        server_header=False,
        # The client's address is found in one place, `client_address`.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS_MAX,
        timeout_graceful_shutdown=drain_seconds_max,
    )
    copies = [listener.dup() for _ in range(CONNECTIONS_PER_TICK - 1)]
    await GracefulServer(config, before_drain=before_drain).serve(sockets=[listener, *copies])
