"""Rebuilds the event tables from the log beside those in use, and swaps them.

What the log still has is applied again; rows of entries that the log has trimmed are copied. The live projection
goes on meanwhile, and nothing reads the new tables before they are complete: the last entries are applied and the
schemas renamed in one transaction, under the lock of the projection's cursor. The cursor stays where it is, so the
projection notices nothing. A rebuild that ends before that has changed nothing; the next one drops what it left.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.core.progress import ProgressListener, SilentProgress
from adloom.events.conversions.attribute import AttributionRules
from adloom.events.log.event import BEGINNING, LogEntry, UnreadableEntryError, decode_event, parse_entry_id
from adloom.events.ports import BatchResult, DecodedEntry, PoisonEntryError
from adloom.events.projections.dead_letters import unwrap_redelivery
from adloom.events.rebuild import store as rebuild_store
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.store import IN_USE, REBUILT, REPLACED, EntryPosition
from adloom.events.tables import erasure_store
from adloom.events.tables.partition_store import describe_event_tables, ensure_days
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.runtime.postgres import Connection, Pool

BATCH_MAX: Final = 4_000
# The log may be trimmed while we read it, so we begin this far behind its oldest entry.
LEAD: Final = timedelta(minutes=1)
# An event that was not in a spool occurred at most a day before its entry, and a little more if clocks differ.
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
    copied: int  # Rows that were copied.
    applied: BatchResult
    left_out: int  # Entries that cannot be applied, as the live projection has found before us.
    events_before: int
    events: int
    days_corrected: int  # Days with other figures than before.


class EventTablesRebuild:
    """Rebuilds the event tables, once."""

    def __init__(  # noqa: PLR0913 - what a test of it makes smaller, or faulty
        self,
        pool: Pool,
        log_scanner: LogScanner,
        *,
        progress: ProgressListener | None = None,
        rebuilt: EventTables | None = None,
        attribution: AttributionRules | None = None,
        batch_max: int = BATCH_MAX,
        lead: timedelta = LEAD,
    ) -> None:
        self._pool = pool
        self._log = log_scanner
        self._progress = progress or SilentProgress()
        self._batch_max = batch_max
        self._lead = lead
        self._in_use = EventTables(pool)
        self._rebuilt = rebuilt or EventTables(pool, schema=REBUILT, attribution=attribution)
        # Entries up to here may be trimmed before we have read them.
        self._until = EntryPosition(0, 0)
        self._result = BatchResult()
        self._left_out = 0
        self._unchecked: list[EntryPosition] = []

    async def run(self, start: str = BEGINNING) -> RebuildReport:
        async with _open_rebuild(self._pool) as connection:
            began_at = await rebuild_store.read_server_time(connection)
            self._until = _parse_position(await self._in_use.read_cursor())
            await rebuild_store.create_schema(connection)
            first, noted = await self._note_entries(
                connection, await self._choose_first(_parse_position(start))
            )
            first, copied = await self._copy(connection, first)
            reach = await _find_reach(connection, first)
            corrected = await self._count_copied(connection, reach)
            position = await self._catch_up(connection, first, noted)
            await self._check_left_out(connection, reach)
            await rebuild_store.analyze_all(connection)
            self._progress.begin("Swapping the tables")
            async with connection.transaction():
                await self._apply_rest(connection, position)
                await erasure_store.erase_again(connection, REBUILT, since=began_at - CLOCKS_DIFFER_MAX)
                await self._check_left_out(connection, reach)
                corrected += await self._complete_days(connection, reach)
                before = await rebuild_store.count_events(connection, IN_USE)
                events = await rebuild_store.count_events(connection, REBUILT)
                await rebuild_store.keep_over_budget(connection)
                await rebuild_store.swap_schemas(connection)
            await rebuild_store.drop_schema(connection, REPLACED)
        return RebuildReport(
            first_entry=first.entry_id,
            copied=copied,
            applied=self._result,
            left_out=self._left_out,
            events_before=before,
            events=events,
            days_corrected=corrected,
        )

    async def _choose_first(self, start: EntryPosition) -> EntryPosition:
        """Choose where to begin: not before the log begins, and not after the end of the tables in use."""
        end = self._until.next
        oldest = await self._log.find_oldest()
        if oldest is None:
            return end
        earliest = _parse_position(oldest)
        if await self._log.was_trimmed():
            earliest = earliest.advance(self._lead)
        return min(end, max(earliest, start))

    async def _note_entries(self, connection: Connection, first: EntryPosition) -> tuple[EntryPosition, int]:
        """Note which entries the log has; return the first of them, and their number."""
        self._progress.begin("Scanning the ledger")
        found, noted = self._until.next, 0
        async for entries, runs in self._log.scan_ids(first.entry_id, self._until.entry_id):
            if noted == 0:
                found = EntryPosition(runs[0].entry_ms, runs[0].first_seq)
            noted += entries
            await rebuild_store.add_kept_entries(connection, runs)
            self._progress.advance(entries)
        await rebuild_store.analyze(connection, "pg_temp.kept_entries")
        return found, noted

    async def _copy(self, connection: Connection, first: EntryPosition) -> tuple[EntryPosition, int]:
        """Copy the rows that cannot be built again; return the first entry to apply, and the number of rows."""
        days = await rebuild_store.list_partitions(connection, IN_USE)
        self._progress.begin("Copying rows that the ledger does not have", len(days))
        copied = 0
        for partition in days:
            copied += await rebuild_store.copy(connection, partition, before=first, until=self._until)
            await rebuild_store.analyze(connection, f"{REBUILT}.{partition.name}")
            self._progress.advance(1)
        copied += await rebuild_store.copy_conversions(connection, before=first, until=self._until)
        # A copy may take hours; what the log trims meanwhile must be copied, too.
        while await self._was_trimmed_after(first):
            start, first = first, await self._choose_first(first)
            for partition in days:
                copied += await rebuild_store.copy_forgotten(connection, partition, first=start, before=first)
            copied += await rebuild_store.copy_forgotten_conversions(connection, first=start, before=first)
        return first, copied

    async def _was_trimmed_after(self, position: EntryPosition) -> bool:
        """Return whether the log may have trimmed entries after a position since we scanned it."""
        if position > self._until:
            return False
        oldest = await self._log.find_oldest()
        return oldest is None or _parse_position(oldest) > position

    async def _count_copied(self, connection: Connection, reach: date) -> int:
        """Count what was copied; return the number of days before `reach` with other counts than before."""
        self._progress.begin("Counting the copied rows")
        await rebuild_store.count_rows(connection)
        days = {partition.day for partition in await rebuild_store.list_partitions(connection, REBUILT)}
        await rebuild_store.copy_counts(connection, days, first=DAY_MIN, before=reach)
        await rebuild_store.analyze(connection, f"{REBUILT}.event_counts")
        return await rebuild_store.correct_days(connection, first=DAY_MIN, before=reach)

    async def _catch_up(self, connection: Connection, first: EntryPosition, noted: int) -> str:
        """Apply until the live projection is at most a batch ahead; return where to go on."""
        self._progress.begin("Applying the ledger", noted)
        start, position = first.entry_id, first
        while True:
            entries = await self._log.read(start, await self._in_use.read_cursor(), count_max=self._batch_max)
            if await self._was_trimmed_after(position):
                raise RebuildRefusedError(
                    "The ledger was trimmed faster than it was read. Nothing has changed; start again."
                )
            await self._apply(connection, self._decode(entries))
            self._progress.advance(len(entries))
            if entries:
                start, position = f"({entries[-1].id}", _parse_position(entries[-1].id)
            if len(entries) < self._batch_max:
                return start

    async def _apply_rest(self, connection: Connection, start: str) -> None:
        """Stop the live projection, and apply what it has applied meanwhile."""
        cursor = await rebuild_store.lock_cursor(connection, EVENT_TABLES)
        while entries := await self._log.read(start, cursor, count_max=self._batch_max):
            await self._apply(connection, self._decode(entries))
            start = f"({entries[-1].id}"

    async def _apply(self, connection: Connection, records: Sequence[DecodedEntry]) -> None:
        """Apply entries; if the tables reject a batch, find the bad entry and leave it out."""
        if not records:
            return
        try:
            async with connection.transaction():
                result = await self._rebuilt.apply_for_rebuild(connection, records)
        except UnavailableError:
            raise
        except Exception as error:
            if len(records) > 1:
                half = len(records) // 2
                await self._apply(connection, records[:half])
                await self._apply(connection, records[half:])
                return
            entry_id = records[0].entry_id
            # A fault that is not the entry's must not make us leave out one entry after another.
            if not isinstance(error, PoisonEntryError) and not await self._log.is_dead(
                EVENT_TABLES, entry_id
            ):
                raise
            self._leave_out(entry_id, repr(error))
        else:
            self._result += result

    def _decode(self, entries: Sequence[LogEntry]) -> list[DecodedEntry]:
        """Decode entries; a redelivery for a follower is skipped here."""
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
        self._unchecked.append(_parse_position(entry_id))
        log.warning("replay_left_out", entry=entry_id, reason=reason)

    async def _check_left_out(self, connection: Connection, reach: date) -> None:
        """Refuse to lose rows that were counted once, because their entries cannot be applied any more."""
        lost = (
            await rebuild_store.find_rows(connection, self._unchecked, since=reach) if self._unchecked else []
        )
        self._unchecked.clear()
        if lost:
            raise RebuildRefusedError(
                f"{len(lost):,} rows would be lost: their entries cannot be applied any more, the first of them"
                f" is {lost[0].entry_id}. Nothing has changed; start behind it with --from."
            )

    async def _complete_days(self, connection: Connection, reach: date) -> int:
        """Complete the days that were applied; return the number of days with other counts than before."""
        days = {partition.day for partition in await rebuild_store.list_partitions(connection, REBUILT)}
        await rebuild_store.copy_counts(connection, days, first=reach, before=DAY_MAX)
        in_use = {partition.day for partition in await rebuild_store.list_partitions(connection, IN_USE)}
        await ensure_days(connection, describe_event_tables(REBUILT), in_use - days)
        return await rebuild_store.correct_days(connection, first=reach, before=DAY_MAX)


@asynccontextmanager
async def _open_rebuild(pool: Pool) -> AsyncGenerator[Connection]:
    """Return a connection with the lock of rebuilds, and drop what an earlier rebuild left."""
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


async def _find_reach(connection: Connection, first: EntryPosition) -> date:
    """Return the first day that applying entries again touches; all days before it are copies."""
    day = _get_day(first) - OCCURRED_BEFORE_MAX
    written = await rebuild_store.find_first_day_written(connection, first)
    return day if written is None else min(day, written)


def _parse_position(entry_id: str) -> EntryPosition:
    return EntryPosition(*parse_entry_id(entry_id))


def _get_day(position: EntryPosition) -> date:
    return datetime.fromtimestamp(position.entry_ms / 1000, UTC).date()
