"""The ledger and the tables in memory, behind the same ports as the real ones, with their faults.

What they promise is what the real servers promise, no more: a confirmed append is kept, a
transaction is whole or not at all. All else may go wrong at either end of any await.
"""

import asyncio
import contextlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.ledger.event import Event, Impression
from adloom.ledger.projection import CursorMovedError, Folded, UnfoldableError
from adloom.ledger.stream import BEGINNING, Entry, Lag, entry_order
from adloom.simulation.faults import Faults, Host, Outages
from adloom.simulation.laws import EventKey

HANG_SECONDS: Final = 60.0
ON_ITS_WAY: Final = 0.5  # How often a message still arrives whose sender was killed meanwhile.
UNFOLDABLE: Final = "unfoldable"  # The correlation id of an event that no table takes.


class LedgerServer:
    """A stream that outlives those who write and read it."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self.faults = faults
        self.outages = Outages("ledger", faults)
        self.buried: list[bytes] = []
        self.appended = 0
        self._clock = clock
        self._entries: list[Entry] = []
        self._orders: list[tuple[int, int]] = []
        self._last = (0, 0)
        self._grown = asyncio.Event()

    @property
    def last_id(self) -> str:
        """The newest entry's id."""
        return f"{self._last[0]}-{self._last[1]}"

    def take(self, data: bytes) -> None:
        """Keep an entry."""
        millis = int(self._clock.now().timestamp() * 1000)
        self._last = max((millis, 0), (self._last[0], self._last[1] + 1))
        self._entries.append(Entry(self.last_id, data))
        self._orders.append(self._last)
        self.appended += 1
        self.faults.trace.note(self.last_id, data)
        self._grown.set()

    def after(self, cursor: str, count_max: int) -> list[Entry]:
        """Give the entries after a cursor."""
        place = bisect_right(self._orders, entry_order(cursor))
        return self._entries[place : place + count_max]

    async def grown(self, cursor: str) -> None:
        """Wait for an entry after a cursor."""
        while self._last <= entry_order(cursor):
            self._grown.clear()
            await self._grown.wait()

    def forget(self, before: str) -> int:
        """Drop the entries before an id."""
        place = bisect_left(self._orders, entry_order(before))
        del self._entries[:place], self._orders[:place]
        return place


class LedgerConnection:
    """One process's way to the ledger."""

    def __init__(self, server: LedgerServer, host: Host) -> None:
        self._server = server
        self._host = host
        self._faults = server.faults

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all, and confirm it; or a part, or all, and not."""
        faults, rates, take = self._faults, self._faults.rates, self._server.take
        await faults.travel()
        if not self._host.is_alive and self._server.outages.is_up and faults.chance.random() < ON_ITS_WAY:
            for entry in entries:
                take(entry)
        self._server.outages.check(self._host)
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

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> list[Entry]:
        """Read what is after a cursor."""
        await self._call("read")
        try:
            async with asyncio.timeout(wait_seconds):
                await self._server.grown(after)
        except TimeoutError:
            return []
        entries = self._server.after(after, count_max)
        await self._faults.travel()
        self._server.outages.check(self._host)
        return entries

    async def bury(self, entry: Entry, *, reason: str) -> None:
        """Lay an entry aside."""
        assert reason
        await self._call("bury")
        self._server.buried.append(entry.data)

    async def lag(self, cursor: str) -> Lag:
        """Tell how much is unread."""
        await self._call("lag")
        return Lag(entries=len(self._server.after(cursor, self._server.appended)), seconds=0.0)

    async def trim(self, before: str) -> int:
        """Forget what is before an id."""
        await self._call("trim")
        return self._server.forget(before)

    async def _call(self, what: str) -> None:
        await self._faults.travel()
        self._server.outages.check(self._host)
        if self._faults.strikes(f"{what} refused", self._faults.rates.refused):
            raise UnavailableError("Refused.")


class TablesServer:
    """Tables that outlive those who write them; a correlation id is a key."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.outages = Outages("tables", faults)
        self.cursor = BEGINNING
        self.rows: set[EventKey] = set()
        self.totals: Counter[tuple[date, str]] = Counter()

    def fold(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        """Do what the transaction does: all of it, at once."""
        if self.cursor != after:
            raise CursorMovedError
        if any(event.correlation_id == UNFOLDABLE for event in events):
            raise UnfoldableError("No column takes this.")
        counted = sum(self._is_new(event) for event in events)
        self.cursor = cursor
        self.faults.trace.note("folded", cursor.encode())
        return Folded(counted=counted, repeated=len(events) - counted)

    def _is_new(self, event: Event) -> bool:
        key = EventKey(kind_of(event), event.correlation_id)
        if key in self.rows:
            return False
        self.rows.add(key)
        self.totals[event.occurred_at.date(), key.kind] += 1
        return True


class TablesConnection:
    """One process's way to the tables."""

    def __init__(self, server: TablesServer, host: Host) -> None:
        self._server = server
        self._host = host
        self._faults = server.faults

    async def cursor(self) -> str:
        """Tell where the projection is."""
        await self._faults.travel()
        self._check("cursor")
        return self._server.cursor

    async def cursors(self) -> list[str]:
        """Tell where all projections are."""
        return [await self.cursor()]

    async def commit(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        """Fold a batch and confirm it; or not, done or not."""
        await self._faults.travel()
        if (
            not self._host.is_alive
            and self._server.outages.is_up
            and self._faults.chance.random() < ON_ITS_WAY
        ):
            with contextlib.suppress(CursorMovedError, UnfoldableError):
                self._server.fold(events, after=after, cursor=cursor)
        self._check("commit")
        folded = self._server.fold(events, after=after, cursor=cursor)
        if self._faults.strikes("commit unanswered", self._faults.rates.answer_lost):
            raise UnavailableError("The answer was lost.")
        await self._faults.travel()
        self._server.outages.check(self._host)
        return folded

    def _check(self, what: str) -> None:
        self._server.outages.check(self._host)
        if self._faults.strikes(f"{what} refused", self._faults.rates.refused):
            raise UnavailableError("Refused.")


def kind_of(event: Event) -> str:
    """Name an event's kind."""
    return "impression" if isinstance(event, Impression) else "click"
