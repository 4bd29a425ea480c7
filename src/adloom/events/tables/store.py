"""Impressions, clicks and their counts in PostgreSQL, with the cursor of the ledger beside them."""

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Final

from adloom.events.followers.recent_counted import RecentCounted
from adloom.events.log.entry import BEGINNING
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.events.store_errors import ROW_ERRORS, translate_database_errors
from adloom.events.tables.apply_batch import (
    CLICKS,
    IMPRESSIONS,
    Additions,
    EventBatch,
    StoredState,
    apply_batch,
    count_by_day,
    count_by_key,
    split_by_kind,
)
from adloom.events.tables.event_store import EventRows
from adloom.events.tables.known_names import DedupFilter
from adloom.events.tables.known_store import StateLookup
from adloom.events.tables.offer_marks_store import OfferMarks
from adloom.events.tables.partition_store import ensure_days
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

EVENT_TABLES: Final = "event_tables"
EVENTS_SCHEMA: Final = "events"

ENSURE_CURSOR = """
    INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, $2) ON CONFLICT (projection) DO NOTHING
"""
CURSOR = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
CURSORS = "SELECT projection, entry_id FROM projection_cursors ORDER BY projection"
# The lock makes two workers take turns, so that neither waits for rows of the other in a circle.
# What follows it are look-ups of keys in partitions that were empty a moment ago: statistics lag
# behind them, and a plan that reads a day from end to end for each batch must not be thinkable.
LOCK_CURSOR = """
    SELECT entry_id, set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
           set_config('plan_cache_mode', 'force_generic_plan', true)
      FROM projection_cursors WHERE projection = $1 FOR UPDATE
"""
MOVE_CURSOR = "UPDATE projection_cursors SET entry_id = $2, moved_at = now() WHERE projection = $1"

_database_errors: Final = partial(
    translate_database_errors, "The database does not take the batch", poison=ROW_ERRORS
)


class EventTables:
    """The projection that statistics are read from, in a schema that a rebuild may name otherwise.

    Whoever is the only one to write them may remember what is in them, and need not look every event up; `recent_counted` is
    told what was written, for those who follow.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        schema: str = EVENTS_SCHEMA,
        projection: str = EVENT_TABLES,
        names: DedupFilter | None = None,
        recent_counted: RecentCounted | None = None,
    ) -> None:
        self._pool = pool
        self._schema = schema
        self._projection = projection
        self._names = names
        self._recent = recent_counted
        self._known = StateLookup(schema, names)
        self._rows = EventRows(schema)
        self._offers = OfferMarks(schema)

    async def read_cursor(self) -> str:
        """Tell the last entry that was folded; at first there is none."""
        with _database_errors():
            # Followers ask often, and a row that is there need not be written.
            cursor: str | None = await self._pool.fetchval(CURSOR, self._projection)
            if cursor is None:
                await self._pool.execute(ENSURE_CURSOR, self._projection, BEGINNING)
                cursor = await self._pool.fetchval(CURSOR, self._projection)
        assert cursor is not None
        return cursor

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Insert the events, count those that are new and move the cursor, in one transaction."""
        batch = split_by_kind(records)
        with _database_errors():
            async with self._pool.acquire() as connection:
                async with connection.transaction():
                    if await connection.fetchval(LOCK_CURSOR, self._projection) != after:
                        raise CursorMovedError
                    known, added = await self._fold(connection, batch, after)
                    await connection.execute(MOVE_CURSOR, self._projection, cursor)
                if self._recent is not None:
                    self._recent.add_batch(after, cursor, added.list_counted())
                if self._names is not None:
                    self._names.add_batch(after, cursor, added, known.days)
                    with contextlib.suppress(*POSTGRES_AWAY):  # The batch is in, whatever comes now.
                        await self._known.read_more_ids(connection, added, known.days)
        return BatchResult(counted=added.size, repeated=added.repeated, dropped=added.dropped)

    async def apply_for_rebuild(self, connection: Connection, records: Sequence[DecodedEntry]) -> BatchResult:
        """Fold for a rebuild: within its own transaction, where nobody else writes, and without a cursor."""
        assert self._names is None, "what is remembered goes with the cursor"
        with _database_errors():
            _, added = await self._fold(connection, split_by_kind(records), "")
        return BatchResult(counted=added.size, repeated=added.repeated, dropped=added.dropped)

    async def _fold(
        self, connection: Connection, batch: EventBatch, cursor: str
    ) -> tuple[StoredState, Additions]:
        """Find out what is new, and write it; only the holder of the cursor's lock may."""
        if not batch.events:
            return StoredState(), Additions()
        since = await self._known.find_start(connection, batch)
        known = await self._known.look_up(connection, batch, since, cursor=cursor)
        added = apply_batch(batch, known)
        written = count_by_day(added)
        await ensure_days(connection, self._schema, written)
        await self._rows.insert(connection, IMPRESSIONS, added.impressions)
        await self._rows.insert(connection, CLICKS, added.clicks)
        await self._rows.add_counts(connection, count_by_key(added))
        await self._rows.add_days(connection, written)
        now_valid = await self._offers.unmark_clicks(connection, added.clicks_now_seen, since)
        await self._rows.make_valid(connection, now_valid)
        return known, added


async def read_all_cursors(connection: "Pool | Connection") -> dict[str, str]:
    """Tell the cursor of every projection in the database, one that is being rebuilt included."""
    with _database_errors():
        return {row["projection"]: row["entry_id"] for row in await connection.fetch(CURSORS)}
