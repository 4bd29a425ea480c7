"""The event log on a simulated Valkey, with its faults.

It promises what the real one promises, no more: a confirmed append is kept, in its order. All else may go wrong at
either end of any await.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import hiredis
from redis.exceptions import ResponseError

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.event_group import FIELD, GROUP_FIELD, drop_before, unpack_entry
from adloom.events.log.stream import REFUSED_ID, EventLogSize, Lag, MemoryUse, ValkeyEventLog
from adloom.events.projections.group import count_readable
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.valkey import Valkey
from simulation.faults import Connection, Faults, Host, Lock, Outages
from simulation.laws import Letter

HANG_SECONDS: Final = 60.0
SECOND_MICROS: Final = 1_000_000

Command: TypeAlias = list[bytes]


class EventLogServer:
    """The event log: a stream, whose entries are events and groups of events, and the state of its consumer groups.

    Its clock may be set ahead and back; ids grow all the same.
    """

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self.faults = faults
        self.outages = Outages("event log", faults, on_forgetting=self.forget_readers)
        self.dead: dict[tuple[str, str], Letter] = {}
        self.tries: Counter[tuple[str, str]] = Counter()
        self.locks: defaultdict[str, Lock] = defaultdict(Lock)  # By projection.
        self.appended = 0
        self.trimmed = 0
        self.groups = 0
        self.scripts = 0
        self.refused = 0
        self.repeated_ids: list[str] = []  # Of events. There must be none.
        self._clock = clock
        self._entries: list[tuple[str, bytes, bytes]] = []  # With an id and a field, as the stream has them.
        self._orders: list[tuple[int, int]] = []
        self._last = (0, 0)
        self._grown = asyncio.Event()

    @property
    def last_id(self) -> str:
        return f"{self._last[0]}-{self._last[1]}"

    def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Do what stands between MULTI and EXEC, and answer as the server does."""
        answers: list[Any] = []
        for name, *words in commands:
            match name:
                case b"MULTI" | b"EXEC":
                    continue
                case b"TIME":
                    answers.append([b"%d" % part for part in divmod(self._read_micros(), SECOND_MICROS)])
                case b"XADD":
                    _, entry_id, field, data, *count = words
                    answers.append(
                        self.take(data, field, entry_id.decode(), count=int(count[1]) if count else 1)
                    )
                case b"EVAL":
                    answers.append(self._add_groups(words[3:]))
                case _:
                    raise AssertionError(f"the event log is not appended to by {name!r}")
        return [*([b"QUEUED"] * len(answers)), answers]

    def take(self, data: bytes, field: bytes = FIELD, entry_id: str = "*", *, count: int = 1) -> object:
        """Append an entry of the stream, with so many events."""
        order = self._find_next() if entry_id == "*" else parse_entry_id(entry_id)
        if order <= self._last:
            self.refused += 1
            return ResponseError(f"The ID specified in XADD is {REFUSED_ID} than the target stream top item")
        millis, sequence = order
        if (millis, sequence - count) < self._last and millis == self._last[0]:
            self.repeated_ids.append(f"{millis}-{sequence - count + 1}")
        self._last = order
        self._entries.append((self.last_id, field, data))
        self._orders.append(order)
        self.appended += 1
        self.groups += field == GROUP_FIELD
        self.faults.trace.note(self.last_id, data)
        self._grown.set()
        return self.last_id.encode()

    def _add_groups(self, groups: Sequence[bytes]) -> int:
        """Append numbers of events and groups in turn, as the script does; return the millisecond."""
        self.scripts += 1
        for count, packed in zip(groups[::2], groups[1::2], strict=True):
            millis, sequence = self._find_next()
            self.take(packed, GROUP_FIELD, f"{millis}-{sequence + int(count) - 1}", count=int(count))
        return self._last[0]

    def _find_next(self) -> tuple[int, int]:
        """Ids grow, whatever the clock does."""
        return max((self._read_micros() // 1_000, 0), (self._last[0], self._last[1] + 1))

    def _read_micros(self) -> int:
        return int(self._clock.now().timestamp() * SECOND_MICROS)

    def read_after(self, cursor: str, until: str | None, count_max: int) -> list[LogEntry]:
        millis, sequence = parse_entry_id(cursor)
        found: list[LogEntry] = []
        for entry in self._entries[bisect_right(self._orders, (millis, sequence)) :]:
            found += drop_before(unpack_entry(*entry), (millis, sequence + 1))
            if len(found) >= count_max:
                break
        return found[: count_readable(found, until, count_max)]

    def count_after(self, cursor: str) -> int:
        return len(self._orders) - bisect_right(self._orders, parse_entry_id(cursor))

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


class EventLogClient:
    """What `ValkeyEventLog` asks beside appending: all processes are of this version, and memory is not short."""

    def register_script(self, script: str) -> None:
        assert script

    async def hgetall(self, name: str) -> Mapping[bytes, bytes]:
        assert name
        return {}

    async def info(self, section: str) -> Mapping[str, int]:
        assert section == "memory"
        return {"used_memory": 0}


class EventLogConnection(Connection):
    """One process's way to the event log: what the real client packs arrives here."""

    def __init__(self, server: EventLogServer, host: Host) -> None:
        super().__init__(server.faults, server.outages, host, hang_seconds_max=HANG_SECONDS)
        self._server = server
        self._client = ValkeyEventLog(cast("Valkey", EventLogClient()), cast("DedicatedConnection", self))

    async def append(self, entries: Sequence[bytes]) -> None:
        await self._client.append(entries)

    async def execute_packed(self, packed: bytes, count: int) -> Sequence[Any]:
        """Append all and confirm it; or some, or all, without confirming."""
        faults = self._faults
        is_lost = faults.strikes("append half done", faults.rates.answer_lost)
        commands = unpack_commands(packed)
        assert len(commands) == count
        taken = commands[: faults.chance.randrange(len(commands) + 1)] if is_lost else commands
        answers = await self.transact("append", lambda: self._server.execute(taken))
        if is_lost:
            raise UnavailableError("The answer was lost.")
        return answers

    async def read_last_id(self) -> str:
        await self.begin("last entry")
        return self._server.last_id

    async def measure_lag(self, projection: str, cursor: str) -> Lag:
        assert projection
        await self.begin("lag")
        return Lag(entries=self._server.count_after(cursor), seconds=0.0)

    async def trim(self, before: str, count_max: int) -> int:
        assert count_max > 0
        await self.begin("trim")
        return self._server.forget(before)

    async def measure_memory(self) -> MemoryUse:
        await self.begin("memory")
        return MemoryUse()

    async def measure_size(self) -> EventLogSize:
        await self.begin("size")
        return EventLogSize(entries=self._server.appended - self._server.trimmed, dead=len(self._server.dead))


def unpack_commands(packed: bytes) -> list[Command]:
    reader = hiredis.Reader()
    reader.feed(packed)
    commands: list[Command] = []
    while isinstance(command := reader.gets(), list):
        commands.append(cast("Command", command))
    return commands


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
