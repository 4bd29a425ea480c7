"""Rebuilding the event tables from the ledger, beside those in use, and putting them in their place.

What the ledger still has is folded anew; rows of what it has forgotten are copied as they are. The living
projection goes on meanwhile, and nobody sees the new tables before they are whole: the last entries
are folded and the schemas renamed in one transaction, under the lock of the projection's cursor. The cursor
stays where it is, so for the projection nothing has happened. Whatever ends a rebuild before that
has changed nothing; what it leaves behind is dropped by the next one.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.events.log.entry import BEGINNING, LogEntry, parse_entry_id
from adloom.events.log.event import UnreadableEntryError, decode_event
from adloom.events.ports import BatchResult, DecodedEntry, PoisonEntryError
from adloom.events.projections.dead_letters import unwrap_redelivery
from adloom.events.rebuild import store as rebuild_store
from adloom.events.rebuild.source import LogScanner
from adloom.events.rebuild.store import IN_USE, REBUILT, REPLACED, EntryPosition
from adloom.events.tables import erasure_store
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.runtime.postgres import Connection, Pool

BATCH_MAX: Final = 4_000
# A ledger that forgets does so while we read it; we begin as much behind its oldest entry as lets us stay ahead.
LEAD: Final = timedelta(minutes=1)
# How long before its entry something occurs that was not in a spool: a day, and a little for clocks that differ.
OCCURRED_BEFORE_MAX: Final = timedelta(days=2)
CLOCKS_DIFFER_MAX: Final = timedelta(days=1)
DAY_MIN: Final = date(1970, 1, 1)
DAY_MAX: Final = date(3000, 1, 1)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RebuildRefusedError(Exception):
    """A rebuild that cannot be done now; the message says why, and nothing has changed."""


class RebuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild has done."""

    first_entry: str
    copied: int  # Rows that were taken over as they were.
    folded: BatchResult
    left_out: int  # Entries that cannot be folded, as the living projection has found before us.
    events_before: int
    events: int
    days_corrected: int  # Days whose figures are others than before.


class RebuildProgress(Protocol):
    """Who watches a rebuild."""

    def begin(self, step: str, total: int | None = None) -> None:
        """Say what is done now, and how much of it there is, where that is known."""
        ...

    def advance(self, count: int) -> None:
        """Say that so much more is done."""
        ...


class SilentProgress:
    """Nobody watches."""

    def begin(self, step: str, total: int | None = None) -> None:
        """Say nothing."""

    def advance(self, count: int) -> None:
        """Say nothing."""


class EventTablesRebuild:
    """Rebuilds the event tables, once."""

    def __init__(  # noqa: PLR0913 - what a test of it makes smaller, or faulty
        self,
        pool: Pool,
        ledger: LogScanner,
        *,
        progress: RebuildProgress | None = None,
        rebuilt: EventTables | None = None,
        batch_max: int = BATCH_MAX,
        lead: timedelta = LEAD,
    ) -> None:
        self._pool = pool
        self._ledger = ledger
        self._progress = progress or SilentProgress()
        self._batch_max = batch_max
        self._lead = lead
        self._in_use = EventTables(pool)
        self._rebuilt = rebuilt or EventTables(pool, schema=REBUILT)
        # What the ledger may forget before we have read it ends here.
        self._until = EntryPosition(0, 0)
        self._folded = BatchResult()
        self._left_out = 0
        self._unchecked: list[EntryPosition] = []

    async def run(self, start: str = BEGINNING) -> RebuildReport:
        """Rebuild from the first entry on that is not before `start`."""
        async with _only_rebuild(self._pool) as connection:
            began_at = await rebuild_store.read_server_time(connection)
            self._until = _place(await self._in_use.read_cursor())
            await rebuild_store.create_schema(connection)
            first, noted = await self._noted(connection, await self._first(_place(start)))
            first, copied = await self._copy(connection, first)
            reach = await _reach(connection, first)
            corrected = await self._count(connection, reach)
            place = await self._catch_up(connection, first, noted)
            await self._check_left_out(connection, reach)
            await rebuild_store.analyze_all(connection)
            self._progress.begin("Putting the new tables in place")
            async with connection.transaction():
                await self._fold_rest(connection, place)
                await erasure_store.erase_again(connection, REBUILT, since=began_at - CLOCKS_DIFFER_MAX)
                await self._check_left_out(connection, reach)
                corrected += await self._settle(connection, reach)
                before = await rebuild_store.count_events(connection, IN_USE)
                events = await rebuild_store.count_events(connection, REBUILT)
                await rebuild_store.swap_schemas(connection)
            await rebuild_store.drop_schema(connection, REPLACED)
        return RebuildReport(
            first_entry=first.entry_id,
            copied=copied,
            folded=self._folded,
            left_out=self._left_out,
            events_before=before,
            events=events,
            days_corrected=corrected,
        )

    async def _first(self, start: EntryPosition) -> EntryPosition:
        """Choose where to begin: not before the ledger does, and not after the tables in use have ended."""
        end = self._until.next
        oldest = await self._ledger.find_oldest()
        if oldest is None:
            return end
        earliest = _place(oldest)
        if await self._ledger.was_trimmed():
            earliest = earliest.later(self._lead)
        return min(end, max(earliest, start))

    async def _noted(self, connection: Connection, first: EntryPosition) -> tuple[EntryPosition, int]:
        """Note which entries the ledger has; tell the first of them, and how many they are."""
        self._progress.begin("Looking through the ledger")
        found, noted = self._until.next, 0
        async for entries, runs in self._ledger.scan_ids(first.entry_id, self._until.entry_id):
            if noted == 0:
                found = EntryPosition(runs[0].entry_ms, runs[0].first_seq)
            noted += entries
            await rebuild_store.add_kept_entries(connection, runs)
            self._progress.advance(entries)
        await rebuild_store.analyze(connection, "pg_temp.kept_entries")
        return found, noted

    async def _copy(self, connection: Connection, first: EntryPosition) -> tuple[EntryPosition, int]:
        """Copy the rows that cannot be made anew; tell how many, and what the first entry is that can be folded."""
        days = await rebuild_store.list_partitions(connection, IN_USE)
        self._progress.begin("Copying what the ledger does not have", len(days))
        copied = 0
        for partition in days:
            copied += await rebuild_store.copy(connection, partition, before=first, until=self._until)
            await rebuild_store.analyze(connection, f"{REBUILT}.{partition.name}")
            self._progress.advance(1)
        # A copy that takes hours is overtaken by what the ledger forgets, and that must be copied then.
        while await self._has_forgotten(first):
            start, first = first, await self._first(first)
            for partition in days:
                copied += await rebuild_store.copy_forgotten(connection, partition, first=start, before=first)
        return first, copied

    async def _has_forgotten(self, place: EntryPosition) -> bool:
        """Tell whether the ledger may have forgotten entries behind a place that it had when we looked through it."""
        if place > self._until:
            return False
        oldest = await self._ledger.find_oldest()
        return oldest is None or _place(oldest) > place

    async def _count(self, connection: Connection, reach: date) -> int:
        """Make the counts of what was copied; tell how many days have others than before, of those that stay so."""
        self._progress.begin("Counting what was copied")
        await rebuild_store.count_rows(connection)
        days = {partition.day for partition in await rebuild_store.list_partitions(connection, REBUILT)}
        await rebuild_store.copy_counts(connection, days, first=DAY_MIN, before=reach)
        await rebuild_store.analyze(connection, f"{REBUILT}.event_counts")
        return await rebuild_store.correct_days(connection, first=DAY_MIN, before=reach)

    async def _catch_up(self, connection: Connection, first: EntryPosition, noted: int) -> str:
        """Fold until the living projection is no more than a batch ahead; tell from where on to go on."""
        self._progress.begin("Folding the ledger", noted)
        start, place = first.entry_id, first
        while True:
            entries = await self._ledger.read(
                start, await self._in_use.read_cursor(), count_max=self._batch_max
            )
            if await self._has_forgotten(place):
                raise RebuildRefusedError(
                    "The ledger has forgotten entries while they were waited for. Nothing has changed; begin again."
                )
            await self._fold(connection, self._readable(entries))
            self._progress.advance(len(entries))
            if entries:
                start, place = f"({entries[-1].id}", _place(entries[-1].id)
            if len(entries) < self._batch_max:
                return start

    async def _fold_rest(self, connection: Connection, start: str) -> None:
        """Fold what the living projection has folded meanwhile, and let it fold no more."""
        cursor = await rebuild_store.lock_cursor(connection, EVENT_TABLES)
        while entries := await self._ledger.read(start, cursor, count_max=self._batch_max):
            await self._fold(connection, self._readable(entries))
            start = f"({entries[-1].id}"

    async def _fold(self, connection: Connection, records: Sequence[DecodedEntry]) -> None:
        """Fold entries; where the tables refuse, find the one that they refuse, and leave it out."""
        if not records:
            return
        try:
            async with connection.transaction():
                folded = await self._rebuilt.apply_for_rebuild(connection, records)
        except UnavailableError:
            raise
        except Exception as error:
            if len(records) > 1:
                half = len(records) // 2
                await self._fold(connection, records[:half])
                await self._fold(connection, records[half:])
                return
            entry_id = records[0].entry_id
            # What is not the entry's fault must not make us leave out one after another.
            if not isinstance(error, PoisonEntryError) and not await self._ledger.is_dead(
                EVENT_TABLES, entry_id
            ):
                raise
            self._leave_out(entry_id, repr(error))
        else:
            self._folded = BatchResult(
                counted=self._folded.counted + folded.counted,
                repeated=self._folded.repeated + folded.repeated,
                dropped=self._folded.dropped + folded.dropped,
            )

    def _readable(self, entries: Sequence[LogEntry]) -> list[DecodedEntry]:
        """Read entries; what was appended again for a follower is nothing here."""
        records: list[DecodedEntry] = []
        for entry in entries:
            try:
                records.append(DecodedEntry(entry.id, decode_event(entry.data)))
            except UnreadableEntryError as error:
                if unwrap_redelivery(entry.data) is None:
                    self._leave_out(entry.id, str(error))
        return records

    def _leave_out(self, entry_id: str, reason: str) -> None:
        self._left_out += 1
        self._unchecked.append(_place(entry_id))
        log.warning("replay_left_out", entry=entry_id, reason=reason)

    async def _check_left_out(self, connection: Connection, reach: date) -> None:
        """Refuse to lose what was counted once, because the entry that it came from cannot be folded any more."""
        lost = (
            await rebuild_store.find_rows(connection, self._unchecked, since=reach) if self._unchecked else []
        )
        self._unchecked.clear()
        if lost:
            raise RebuildRefusedError(
                f"{len(lost):,} rows would be lost: their entries cannot be folded any more, the first of them"
                f" is {lost[0].entry_id}. Nothing has changed; begin behind it with --from."
            )

    async def _settle(self, connection: Connection, reach: date) -> int:
        """Bring the days that were folded to their end; tell how many have other counts than before."""
        days = {partition.day for partition in await rebuild_store.list_partitions(connection, REBUILT)}
        await rebuild_store.copy_counts(connection, days, first=reach, before=DAY_MAX)
        in_use = {partition.day for partition in await rebuild_store.list_partitions(connection, IN_USE)}
        await rebuild_store.ensure_days(connection, in_use - days)
        return await rebuild_store.correct_days(connection, first=reach, before=DAY_MAX)


@asynccontextmanager
async def _only_rebuild(pool: Pool) -> AsyncGenerator[Connection]:
    """Give a connection that no other rebuild has beside it, with nothing of an earlier one in the way."""
    async with pool.acquire() as connection:
        if not await rebuild_store.take_lock(connection):
            raise RebuildRefusedError("Another replay of these tables is under way; wait until it has ended.")
        if things := await rebuild_store.find_dependents(connection):
            raise RebuildRefusedError(
                f"What depends on the old tables would be lost with them: {', '.join(things)}."
                " Drop it, replay, and make it again."
            )
        await rebuild_store.drop_schema(connection, REPLACED)
        await rebuild_store.drop_schema(connection, REBUILT)
        yield connection


async def _reach(connection: Connection, first: EntryPosition) -> date:
    """Tell the first day that is touched by what is folded anew; all before it are as they were copied."""
    day = _day(first) - OCCURRED_BEFORE_MAX
    written = await rebuild_store.find_first_day_written(connection, first)
    return day if written is None else min(day, written)


def _place(entry_id: str) -> EntryPosition:
    return EntryPosition(*parse_entry_id(entry_id))


def _day(place: EntryPosition) -> date:
    return datetime.fromtimestamp(place.entry_ms / 1000, UTC).date()
