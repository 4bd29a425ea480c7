"""uvicorn's own protocol with timeouts: without them idle sockets use up all file descriptors.

The delivery plane does not need this: `fast.protocol.FastProtocol` has bounds of its own.
"""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


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
