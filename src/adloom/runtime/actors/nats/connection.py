"""The connection to NATS: the only module that knows its client library."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.nats.ports import Received
from adloom.runtime.loops import pause
from adloom.runtime.process.roles import parse_address

CONNECT_SECONDS_MAX: Final = 2
RECONNECT_SECONDS: Final = 0.25
PING_SECONDS: Final = 5
REQUEST_SECONDS_MAX: Final = 3.0
CLOSE_SECONDS_MAX: Final = 1.0
# What is published while the server is away waits here; beyond it, publishing fails.
PENDING_BYTES_MAX: Final = 8 * 2**20

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class NatsConnection:
    """Publishes, subscribes and asks; a server that is away is looked for until it is there."""

    def __init__(self, urls: str, *, name: str) -> None:
        self._address = parse_address(urls)
        self._name = name
        self._client = Client()
        self._subscriptions: list[tuple[str, Callable[[Msg], Awaitable[None]]]] = []
        self._opening: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._is_logged = False
        self._is_closing = False

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    @property
    def payload_max(self) -> int:
        return self._client.max_payload

    async def open(self, stop: asyncio.Event) -> None:
        """Connect, however long that takes, unless `stop` is set."""
        self._stop = stop
        await self._connect(stop)

    async def _connect(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._client.connect(
                    list(self._address.urls),
                    name=self._name,
                    user=self._address.user,
                    password=self._address.read_password,
                    tls=self._address.tls,
                    connect_timeout=CONNECT_SECONDS_MAX,
                    # The stubs know whole seconds only.
                    reconnect_time_wait=RECONNECT_SECONDS,  # pyright: ignore[reportArgumentType]
                    max_reconnect_attempts=-1,
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=2,
                    pending_size=PENDING_BYTES_MAX,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_reconnected,
                    closed_cb=self._on_closed,
                )
            except (NatsError, OSError, TimeoutError) as error:
                await self._on_error(error)
                await pause(1.0, stop)
            else:
                log.info("nats_connected", name=self._name)
                return

    async def close(self) -> None:
        self._is_closing = True
        if self._opening is not None:
            self._opening.cancel()
        with suppress(NatsError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                if self._client.is_connected:
                    await self._client.flush()
                await self._client.close()

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> bool:
        """Send without waiting; return whether it is on its way."""
        try:
            await self._client.publish(subject, data, reply=reply, headers=headers)
        except (NatsError, OSError):
            return False
        return True

    async def subscribe(self, subject: str, on_message: Callable[[Received], Awaitable[None]]) -> None:
        """Receive the messages of a subject until the connection is closed, also after a server was away."""

        async def convert(message: Msg) -> None:
            await on_message(Received(message.subject, message.data, message.reply, message.headers or {}))

        self._subscriptions.append((subject, convert))
        await self._client.subscribe(subject, cb=convert)

    async def request(self, subject: str, data: bytes) -> bytes:
        """Ask the server, or raise UnavailableError."""
        try:
            answer = await self._client.request(subject, data, timeout=REQUEST_SECONDS_MAX)
        except (NatsError, OSError, TimeoutError) as error:
            raise UnavailableError(f"NATS does not answer: {error!r}") from error
        return answer.data

    async def _on_error(self, error: Exception) -> None:
        # It comes with every attempt to connect again.
        if not self._is_logged:
            log.warning("nats_away", reason=repr(error))
        self._is_logged = True

    async def _on_disconnected(self) -> None:
        if not self._is_closing:
            log.warning("nats_disconnected", name=self._name)

    async def _on_reconnected(self) -> None:
        self._is_logged = False
        log.info("nats_connected_again", name=self._name)

    async def _on_closed(self) -> None:
        """Begin again with another client: one whose password is refused, as after a change of it, gives up for good."""
        if not self._is_closing:
            self._opening = asyncio.create_task(self._open_again())

    async def _open_again(self) -> None:
        await pause(RECONNECT_SECONDS, self._stop)
        self._client = Client()
        await self._connect(self._stop)
        for subject, on_message in self._subscriptions:
            with suppress(NatsError, OSError):  # It is away again, and comes back as any other.
                await self._client.subscribe(subject, cb=on_message)
