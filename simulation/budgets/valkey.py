"""Valkey in memory, as far as budget actors and delivery processes use it: messages get lost, repeated and reordered.

It replaces the client, so that the real subscriptions, inbox and lease clients run over it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from redis.exceptions import ConnectionError as DisconnectedError

from adloom.core.errors import UnavailableError
from adloom.runtime.valkey import Valkey
from simulation.faults import Faults, Host, wait_unless

DELAY_SECONDS_MAX: Final = 15.0
OWNER_SECONDS: Final = 5.0


class ValkeyServer:
    """Channels, a few values, and the leader lock."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.is_up = True
        self.values: dict[str, bytes] = {}
        self.owner: tuple[str, float] | None = None
        self._listeners: dict[str, list[Listener]] = {}

    def listen(self, listener: "Listener", channel: str) -> None:
        self._listeners.setdefault(channel, []).append(listener)

    def leave(self, listener: "Listener") -> None:
        for listeners in self._listeners.values():
            if listener in listeners:
                listeners.remove(listener)

    def post(self, channel: str, data: bytes) -> int:
        """Return how many listen now."""
        listeners = list(self._listeners.get(channel, ()))
        for listener in listeners:
            self._send(listener, data)
        return len(listeners)

    def _send(self, listener: "Listener", data: bytes) -> None:
        faults, rates = self.faults, self.faults.rates
        if faults.strikes("mail lost", rates.mail_lost):
            return
        for _ in range(2 if faults.strikes("mail repeated", rates.mail_repeated) else 1):
            seconds = faults.seconds(0.002)
            if faults.strikes("mail delayed", rates.mail_delayed):
                seconds = faults.chance.uniform(0, DELAY_SECONDS_MAX)
            asyncio.get_running_loop().call_later(seconds, listener.put, data)

    async def come_and_go(self, ending: asyncio.Event) -> None:
        """Go away and come back; listeners have to subscribe again."""
        faults = self.faults
        while await wait_unless(ending, faults.seconds(faults.rates.outage_seconds_between)):
            faults.injected["valkey away"] += 1
            self.is_up = False
            for listener in [one for listeners in self._listeners.values() for one in listeners]:
                listener.cut()
            self._listeners.clear()
            await wait_unless(ending, faults.seconds(faults.rates.outage_seconds_mean))
            if faults.strikes("valkey forgot everything", faults.rates.readers_forgotten):
                self.values.clear()
                self.owner = None
            self.is_up = True


class Listener:
    """A connection that listens."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        self._server = server
        self._host = host
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def put(self, data: bytes) -> None:
        self._messages.put_nowait({"type": "message", "data": data})

    def cut(self) -> None:
        self._messages.put_nowait(None)

    async def subscribe(self, channel: str) -> None:
        await _arrived(self._server, self._host)
        self._server.listen(self, channel)
        self._messages.put_nowait({"type": "subscribe"})

    async def ping(self) -> None:
        await _arrived(self._server, self._host)
        self._messages.put_nowait({"type": "pong"})

    async def get_message(self, timeout: float) -> dict[str, Any] | None:  # noqa: ASYNC109 - the driver's signature
        try:
            async with asyncio.timeout(timeout):
                message = await self._messages.get()
        except TimeoutError:
            return None
        if message is None or not self._host.is_alive:
            raise DisconnectedError("Cut off.")
        return message


class Pipeline:
    """Commands that travel together; the process may die between any two of them."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        self._server = server
        self._host = host
        self._said: list[tuple[str, bytes]] = []

    def publish(self, channel: str, data: bytes) -> None:
        self._said.append((channel, data))

    async def execute(self) -> None:
        await _arrived(self._server, self._host)
        faults = self._server.faults
        for channel, data in self._said:
            if faults.strikes("died between news", faults.rates.died):
                self._host.kill()
            if not self._host.is_alive:
                raise DisconnectedError("Dead.")
            self._server.post(channel, data)
        await _arrived(self._server, self._host)


class ValkeyClient:
    """One process's client, with the calls that are made here and no others."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        self._server = server
        self._host = host

    async def publish(self, channel: str, data: bytes) -> int:
        await _arrived(self._server, self._host)
        listeners = self._server.post(channel, data)
        await _arrived(self._server, self._host)
        return listeners

    async def get(self, name: str) -> bytes | None:
        await _arrived(self._server, self._host)
        return self._server.values.get(name)

    async def set(self, name: str, value: int) -> None:
        await _arrived(self._server, self._host)
        self._server.values[name] = str(value).encode()

    @asynccontextmanager
    async def pubsub(self) -> AsyncGenerator[Listener]:
        listener = Listener(self._server, self._host)
        try:
            yield listener
        finally:
            self._server.leave(listener)

    @asynccontextmanager
    async def pipeline(self, *, transaction: bool) -> AsyncGenerator[Pipeline]:
        assert not transaction
        yield Pipeline(self._server, self._host)


def valkey_of(server: ValkeyServer, host: Host) -> Valkey:
    """Build a client: one by its calls, not by its type."""
    return cast("Valkey", ValkeyClient(server, host))


class SimulatedLeaderLock:
    """The leader lock; now and then two workers hold it."""

    def __init__(self, server: ValkeyServer, host: Host, *, name: str) -> None:
        self._server = server
        self._host = host
        self._name = name

    async def acquire(self) -> bool:
        await self._arrived()
        faults, now = self._server.faults, asyncio.get_running_loop().time()
        owner = self._server.owner
        is_anothers = owner is not None and owner[0] != self._name and owner[1] > now
        if is_anothers:
            return faults.strikes("budget actors owned twice", faults.rates.owned_twice)
        self._server.owner = self._name, now + OWNER_SECONDS
        return True

    async def release(self) -> None:
        await self._arrived()
        if self._server.owner is not None and self._server.owner[0] == self._name:
            self._server.owner = None

    async def _arrived(self) -> None:
        try:
            await _arrived(self._server, self._host)
        except DisconnectedError as error:
            raise UnavailableError("The leader lock cannot be reached.") from error


async def _arrived(server: ValkeyServer, host: Host) -> None:
    """Raise if a call, or its answer, does not arrive."""
    await server.faults.travel()
    if not server.is_up or not host.is_alive:
        raise DisconnectedError("Away.")
