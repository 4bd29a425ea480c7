"""Valkey in memory, with its faults: channels, a few values and locks.

Messages get lost, repeated and reordered, and all else may go wrong at either end of any await.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from redis.exceptions import ConnectionError as DisconnectedError

from adloom.runtime.valkey import Valkey
from simulation.faults import Connection, Faults, Host, Lock, Outages

DELAY_SECONDS_MAX: Final = 15.0
OWNER_SECONDS: Final = 5.0


class ValkeyServer:
    """Channels, a few values, and the leader lock."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.outages = Outages("valkey", faults, on_leaving=self._cut_all, on_forgetting=self._forget)
        self.values: dict[str, bytes] = {}
        self.lock = Lock()
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)

    def listen(self, listener: "Listener", channel: str) -> None:
        self._listeners[channel].append(listener)

    def leave(self, listener: "Listener", *channels: str) -> None:
        """Take a listener from some channels, or from all."""
        for channel in channels or list(self._listeners):
            if listener in self._listeners[channel]:
                self._listeners[channel].remove(listener)

    def post(self, channel: str, data: bytes) -> int:
        """Return how many listen now."""
        listeners = list(self._listeners[channel])
        for listener in listeners:
            self._send(listener, channel, data)
        return len(listeners)

    def _send(self, listener: "Listener", channel: str, data: bytes) -> None:
        faults, rates = self.faults, self.faults.rates
        if faults.strikes("mail lost", rates.mail_lost):
            return
        for _ in range(2 if faults.strikes("mail repeated", rates.mail_repeated) else 1):
            seconds = faults.draw_seconds(0.002)
            if faults.strikes("mail delayed", rates.mail_delayed):
                seconds = faults.chance.uniform(0, DELAY_SECONDS_MAX)
            asyncio.get_running_loop().call_later(seconds, listener.put, channel, data)

    def _cut_all(self) -> None:
        # They have to subscribe again.
        for listener in [one for listeners in self._listeners.values() for one in listeners]:
            listener.cut()
        self._listeners.clear()

    def _forget(self) -> None:
        self.values.clear()
        self.lock = Lock()


class _ValkeyConnection:
    """One process's way to Valkey."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        self._server = server
        self._host = host

    async def _arrive(self) -> None:
        """Raise if a call, or its answer, does not arrive."""
        await self._server.faults.travel()
        if not (self._server.outages.is_up and self._host.is_alive):
            raise DisconnectedError("Away.")


class Listener(_ValkeyConnection):
    """A connection that listens."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        super().__init__(server, host)
        self._messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def put(self, channel: str, data: bytes) -> None:
        self._messages.put_nowait({"type": "message", "channel": channel.encode(), "data": data})

    def cut(self) -> None:
        self._messages.put_nowait(None)

    async def subscribe(self, *channels: str) -> None:
        await self._arrive()
        for channel in channels:
            self._server.listen(self, channel)
            self._messages.put_nowait({"type": "subscribe", "channel": channel.encode()})

    async def unsubscribe(self, *channels: str) -> None:
        await self._arrive()
        self._server.leave(self, *channels)

    async def ping(self) -> None:
        await self._arrive()
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


class Pipeline(_ValkeyConnection):
    """Commands that travel together; the process may die between any two of them."""

    def __init__(self, server: ValkeyServer, host: Host) -> None:
        super().__init__(server, host)
        self._said: list[tuple[str, bytes]] = []

    def publish(self, channel: str, data: bytes) -> None:
        self._said.append((channel, data))

    async def execute(self) -> None:
        await self._arrive()
        faults = self._server.faults
        for channel, data in self._said:
            if faults.strikes("died between news", faults.rates.died):
                self._host.kill()
            if not self._host.is_alive:
                raise DisconnectedError("Dead.")
            self._server.post(channel, data)
        await self._arrive()


class ValkeyClient(_ValkeyConnection):
    """One process's client, with the calls that are made here and no others.

    It replaces the driver's, so that the real subscriptions, inbox and lease clients run over it.
    """

    async def publish(self, channel: str, data: bytes) -> int:
        await self._arrive()
        listeners = self._server.post(channel, data)
        await self._arrive()
        return listeners

    async def get(self, name: str) -> bytes | None:
        await self._arrive()
        return self._server.values.get(name)

    async def set(self, name: str, value: int) -> None:
        await self._arrive()
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


def make_valkey(server: ValkeyServer, host: Host) -> Valkey:
    """Build a client: one by its calls, not by its type."""
    return cast("Valkey", ValkeyClient(server, host))


class SimulatedLeaderLock(Connection):
    """The leader lock; now and then two workers hold it."""

    def __init__(self, server: ValkeyServer, host: Host, *, name: str) -> None:
        super().__init__(server.faults, server.outages, host)
        self._server = server
        self._name = name
        self.was_just_taken = False

    async def acquire(self) -> bool:
        await self.begin("leader lock")
        self.was_just_taken = False
        if self._server.lock.is_anothers(self._name):
            return self._faults.strikes("budget actors owned twice", self._faults.rates.owned_twice)
        self.was_just_taken = self._server.lock.take(self._name, OWNER_SECONDS)
        return True

    async def release(self) -> None:
        await self.begin("leader lock")
        self._server.lock.release(self._name)
