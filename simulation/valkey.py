"""Valkey in memory, with its faults: the event log, channels, a few values and locks.

It promises what the real one promises, no more: a confirmed append is kept, in its order. Messages get lost, repeated
and reordered, and all else may go wrong at either end of any await.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from redis.exceptions import ConnectionError as DisconnectedError

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.stream import EventLogSize, Lag, MemoryUse
from adloom.runtime.valkey import Valkey
from simulation.faults import Connection, Faults, Host, Lock, Outages
from simulation.laws import Letter

HANG_SECONDS: Final = 60.0
DELAY_SECONDS_MAX: Final = 15.0
OWNER_SECONDS: Final = 5.0


class EventLogServer:
    """The event log: entries, and the state of its consumer groups."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self.faults = faults
        self.outages = Outages("event log", faults, on_forgetting=self.forget_readers)
        self.dead: dict[tuple[str, str], Letter] = {}
        self.tries: Counter[tuple[str, str]] = Counter()
        self.locks: defaultdict[str, Lock] = defaultdict(Lock)  # By projection.
        self.appended = 0
        self.trimmed = 0
        self._clock = clock
        self._entries: list[LogEntry] = []
        self._orders: list[tuple[int, int]] = []
        self._last = (0, 0)
        self._grown = asyncio.Event()

    @property
    def last_id(self) -> str:
        return f"{self._last[0]}-{self._last[1]}"

    def take(self, data: bytes) -> None:
        """Ids grow, whatever the clock does."""
        millis = int(self._clock.now().timestamp() * 1000)
        self._last = max((millis, 0), (self._last[0], self._last[1] + 1))
        self._entries.append(LogEntry(self.last_id, data))
        self._orders.append(self._last)
        self.appended += 1
        self.faults.trace.note(self.last_id, data)
        self._grown.set()

    def read_after(self, cursor: str, until: str | None, count_max: int) -> list[LogEntry]:
        start = bisect_right(self._orders, parse_entry_id(cursor))
        end = len(self._orders) if until is None else bisect_right(self._orders, parse_entry_id(until))
        return self._entries[start : min(end, start + count_max)]

    async def wait_for_growth(self, cursor: str) -> None:
        while self._last <= parse_entry_id(cursor):
            self._grown.clear()
            await self._grown.wait()

    def forget(self, before: str) -> int:
        place = bisect_left(self._orders, parse_entry_id(before))
        del self._entries[:place], self._orders[:place]
        self.trimmed += place
        return place

    def forget_readers(self) -> None:
        self.locks.clear()
        self.tries.clear()


class EventLogConnection(Connection):
    """One process's way to the event log."""

    def __init__(self, server: EventLogServer, host: Host) -> None:
        super().__init__(server.faults, server.outages, host, hang_seconds_max=HANG_SECONDS)
        self._server = server

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all and confirm it; or some, or all, without confirming."""
        faults = self._faults
        is_lost = faults.strikes("append half done", faults.rates.answer_lost)
        taken = entries[: faults.chance.randrange(len(entries) + 1)] if is_lost else entries

        def take() -> None:
            for entry in taken:
                self._server.take(entry)

        await self.transact("append", take)
        if is_lost:
            raise UnavailableError("The answer was lost.")

    async def read_last_id(self) -> str:
        await self.begin("last entry")
        return self._server.last_id

    async def measure_lag(self, projection: str, cursor: str) -> Lag:
        assert projection
        await self.begin("lag")
        return Lag(entries=len(self._server.read_after(cursor, None, self._server.appended)), seconds=0.0)

    async def trim(self, before: str) -> int:
        await self.begin("trim")
        return self._server.forget(before)

    async def trim_oldest(self, applied: str, count_max: int) -> int:
        raise AssertionError(f"memory is not short here: {count_max} entries before {applied}")

    async def measure_memory(self) -> MemoryUse:
        await self.begin("memory")
        return MemoryUse()

    async def measure_size(self) -> EventLogSize:
        await self.begin("size")
        return EventLogSize(entries=self._server.appended - self._server.trimmed, dead=len(self._server.dead))


class GroupConnection(Connection):
    """One worker's place in the group of one projection."""

    def __init__(
        self, server: EventLogServer, host: Host, projection: str, *, consumer: str, lease_seconds: float
    ) -> None:
        super().__init__(server.faults, server.outages, host)
        self._server = server
        self._projection = projection
        self._consumer = consumer
        self._lease_seconds = lease_seconds

    @property
    def _lock(self) -> Lock:
        return self._server.locks[self._projection]

    async def acquire(self) -> bool:
        await self.begin("own")
        if self._lock.is_anothers(self._consumer):
            return False
        self._lock.take(self._consumer, self._lease_seconds)
        return True

    async def release(self) -> None:
        await self.begin("disown")
        self._lock.release(self._consumer)

    async def read(self, after: str, *, until: str | None, count_max: int) -> list[LogEntry] | None:
        async with self.call("read"):
            if self._lock.is_anothers(self._consumer):
                return None
            return self._server.read_after(after, until, count_max)

    async def wait(self, after: str, *, seconds: float) -> None:
        async with self.call("wait"):
            try:
                async with asyncio.timeout(seconds):
                    await self._server.wait_for_growth(after)
            except TimeoutError:
                return

    async def count_try(self, entry_id: str) -> int:
        async with self.call("tried"):
            self._server.tries[self._projection, entry_id] += 1
            return self._server.tries[self._projection, entry_id]

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        assert reason
        assert again
        async with self.call("bury"):
            letter = Letter(self._projection, entry.data, tries)
            self._server.dead.setdefault((self._projection, entry.id), letter)


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

    async def acquire(self) -> bool:
        await self.begin("leader lock")
        if self._server.lock.is_anothers(self._name):
            return self._faults.strikes("budget actors owned twice", self._faults.rates.owned_twice)
        self._server.lock.take(self._name, OWNER_SECONDS)
        return True

    async def release(self) -> None:
        await self.begin("leader lock")
        self._server.lock.release(self._name)
