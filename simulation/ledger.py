"""The ledger in memory, behind the ports of the appender, the projections and the upkeep, with its faults.

It promises what the real one promises, no more: a confirmed append is kept, in its order. All else may
go wrong at either end of any await.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.stream import EventLogSize, Lag
from simulation.faults import ON_ITS_WAY, Faults, Host, Outages
from simulation.laws import Letter

HANG_SECONDS: Final = 60.0


class Lease(NamedTuple):
    """Which consumer works for a projection, and until when."""

    consumer: str
    ends_at: float


class LedgerServer:
    """The event log: entries, and the state of its consumer groups."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self.faults = faults
        self.outages = Outages("ledger", faults, on_forgetting=self.forget_readers)
        self.dead: dict[tuple[str, str], Letter] = {}
        self.tries: Counter[tuple[str, str]] = Counter()
        self.leases: dict[str, Lease] = {}
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

    def after(self, cursor: str, until: str | None, count_max: int) -> list[LogEntry]:
        start = bisect_right(self._orders, parse_entry_id(cursor))
        end = len(self._orders) if until is None else bisect_right(self._orders, parse_entry_id(until))
        return self._entries[start : min(end, start + count_max)]

    async def grown(self, cursor: str) -> None:
        while self._last <= parse_entry_id(cursor):
            self._grown.clear()
            await self._grown.wait()

    def forget(self, before: str) -> int:
        place = bisect_left(self._orders, parse_entry_id(before))
        del self._entries[:place], self._orders[:place]
        self.trimmed += place
        return place

    def forget_readers(self) -> None:
        self.leases.clear()
        self.tries.clear()


class LedgerConnection:
    """One process's way to the ledger."""

    def __init__(self, server: LedgerServer, host: Host) -> None:
        self._server = server
        self._host = host
        self._faults = server.faults

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all and confirm it; or some, or all, without confirming."""
        faults, rates, take = self._faults, self._faults.rates, self._server.take

        def take_all() -> None:
            for entry in entries:
                take(entry)

        await faults.travel()
        if not self._host.is_alive and self._server.outages.is_up and faults.chance.random() < ON_ITS_WAY:
            take_all()
        self._server.outages.check(self._host)
        if faults.later("append late", take_all):
            raise UnavailableError("It takes too long.")
        if faults.strikes("append refused", rates.refused):
            raise UnavailableError("Refused.")
        is_lost = faults.strikes("append half done", rates.answer_lost)
        for entry in entries[: faults.chance.randrange(len(entries) + 1)] if is_lost else entries:
            take(entry)
        if faults.strikes("append unanswered", rates.hung):
            await asyncio.sleep(HANG_SECONDS)
        await faults.travel()
        self._server.outages.check(self._host)
        if is_lost:
            raise UnavailableError("The answer was lost.")

    async def measure_lag(self, projection: str, cursor: str) -> Lag:
        assert projection
        await self.call("lag")
        return Lag(entries=len(self._server.after(cursor, None, self._server.appended)), seconds=0.0)

    async def trim(self, before: str) -> int:
        await self.call("trim")
        return self._server.forget(before)

    async def measure_size(self) -> EventLogSize:
        await self.call("size")
        return EventLogSize(entries=self._server.appended - self._server.trimmed, dead=len(self._server.dead))

    async def call(self, what: str) -> None:
        await self._faults.travel()
        self._server.outages.check(self._host)
        if self._faults.strikes(f"{what} refused", self._faults.rates.refused):
            raise UnavailableError("Refused.")


class GroupConnection:
    """One worker's place in the group of one projection."""

    def __init__(
        self, server: LedgerServer, host: Host, projection: str, *, consumer: str, lease_seconds: float
    ) -> None:
        self._server = server
        self._host = host
        self._projection = projection
        self._consumer = consumer
        self._lease_seconds = lease_seconds
        self._call = LedgerConnection(server, host).call

    async def acquire(self) -> bool:
        await self._call("own")
        if self._is_anothers():
            return False
        now = asyncio.get_running_loop().time()
        self._server.leases[self._projection] = Lease(self._consumer, now + self._lease_seconds)
        return True

    async def release(self) -> None:
        await self._call("disown")
        if not self._is_anothers():
            self._server.leases.pop(self._projection, None)

    async def read(self, after: str, *, until: str | None, count_max: int) -> list[LogEntry] | None:
        await self._call("read")
        if self._is_anothers():
            return None
        entries = self._server.after(after, until, count_max)
        await self._answer()
        return entries

    async def wait(self, after: str, *, seconds: float) -> None:
        await self._call("wait")
        try:
            async with asyncio.timeout(seconds):
                await self._server.grown(after)
        except TimeoutError:
            return
        await self._answer()

    async def count_try(self, entry_id: str) -> int:
        await self._call("tried")
        key = self._projection, entry_id
        self._server.tries[key] += 1
        tries = self._server.tries[key]
        await self._answer()
        return tries

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        assert reason
        assert again
        await self._call("bury")
        key = self._projection, entry.id
        self._server.dead.setdefault(key, Letter(self._projection, entry.data, tries))
        await self._answer()

    async def _answer(self) -> None:
        faults = self._server.faults
        await faults.travel()
        self._server.outages.check(self._host)
        if faults.strikes("answer lost", faults.rates.answer_lost):
            raise UnavailableError("The answer was lost.")

    def _is_anothers(self) -> bool:
        lease = self._server.leases.get(self._projection)
        now = asyncio.get_running_loop().time()
        return lease is not None and lease.consumer != self._consumer and lease.ends_at > now
