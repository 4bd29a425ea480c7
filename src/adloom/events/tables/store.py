"""The projection `event_tables`: impressions, clicks, conversions and their counts in PostgreSQL, with the cursor of the log."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from adloom.events.conversions.attribute import AttributionRules, CatalogKeys, NewConversions
from adloom.events.conversions.store import ConversionRows
from adloom.events.cursor_store import (
    BY_SAME_INDEX,
    ROW_ERRORS,
    lock_cursor,
    move_cursor,
    read_cursor,
    translate_database_errors,
)
from adloom.events.followers.counted import RecentCounted
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.tables.apply_batch import (
    CLICKS,
    COUNTED_DEVICES,
    IMPRESSIONS,
    Additions,
    EventBatch,
    TableState,
    apply_batch,
    count_by_key,
    find_erased_entries,
    split_by_kind,
)
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.erasure_store import note_entries
from adloom.events.tables.event_store import EventRows
from adloom.events.tables.lookup_store import StateLookup, find_erased, find_keys
from adloom.events.tables.partition_store import describe_event_tables, ensure_days
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

EVENT_TABLES: Final = "event_tables"
EVENTS_SCHEMA: Final = "events"

_database_errors: Final = partial(
    translate_database_errors, "The database does not take the batch", poison=ROW_ERRORS
)


class EventTables:
    """The projection that statistics are read from, in a schema that a rebuild names otherwise.

    With a dedup filter new events need no look-up; nobody else may write then. `recent_counted` receives what
    was written, for the followers in this process.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        schema: str = EVENTS_SCHEMA,
        dedup: DedupFilter | None = None,
        recent_counted: RecentCounted | None = None,
        attribution: AttributionRules | None = None,
    ) -> None:
        self._pool = pool
        self._dedup = dedup
        self._recent_counted = recent_counted
        self._lookup = StateLookup(schema, dedup)
        self._rows = EventRows(schema)
        self._conversions = ConversionRows(
            schema, attribution or AttributionRules(), counted_devices=COUNTED_DEVICES
        )
        self._partitions = describe_event_tables(schema)

    async def read_cursor(self) -> str:
        return await read_cursor(self._pool, EVENT_TABLES)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Insert the new events, count them and move the cursor, in one transaction."""
        batch = split_by_kind(records)
        with _database_errors():
            async with self._pool.acquire() as connection:
                async with connection.transaction():
                    await lock_cursor(connection, EVENT_TABLES, after=after)
                    state, added = await self._apply(connection, batch, after)
                    conversions = await self._apply_conversions(connection, batch, state, added)
                    await move_cursor(connection, EVENT_TABLES, after=after, cursor=cursor)
                if self._recent_counted is not None:
                    at = asyncio.get_running_loop().time()
                    self._recent_counted.add_batch(after, cursor, added.impressions, at=at)
                if self._dedup is not None:
                    self._dedup.add_batch(after, cursor, added, state.days)
                    with contextlib.suppress(*POSTGRES_AWAY):  # The batch is in, whatever comes now.
                        await self._lookup.read_more_ids(connection, added, state.days)
        return _build_result(added, conversions)

    async def apply_for_rebuild(self, connection: Connection, records: Sequence[DecodedEntry]) -> BatchResult:
        """Apply a batch in the rebuild's own transaction, where nobody else writes, and without a cursor."""
        assert self._dedup is None, "the filter belongs to the cursor"
        with _database_errors():
            await connection.execute(BY_SAME_INDEX)
            batch = split_by_kind(records)
            state, added = await self._apply(connection, batch, "")
            conversions = await self._apply_conversions(connection, batch, state, added)
        return _build_result(added, conversions)

    async def _apply(
        self, connection: Connection, batch: EventBatch, cursor: str
    ) -> tuple[TableState, Additions]:
        if not batch.events:
            if batch.served:
                state = TableState(erased_at=await find_erased(connection, batch))
                await note_entries(connection, find_erased_entries(batch, state))
            return TableState(), Additions()
        since = await self._lookup.find_start(connection, batch)
        state = await self._lookup.look_up(connection, batch, since, cursor=cursor)
        added = apply_batch(batch, state)
        await ensure_days(connection, self._partitions, added.days)
        await self._rows.insert(connection, IMPRESSIONS, added.impressions)
        await self._rows.insert(connection, CLICKS, added.clicks)
        await self._rows.add_counts(connection, count_by_key(added))
        await self._rows.add_days(connection, added.days)
        await self._rows.unmark_clicks(connection, added.clicks_now_seen, since)
        await note_entries(connection, added.erased_entries)
        return state, added

    async def _apply_conversions(
        self, connection: Connection, batch: EventBatch, state: TableState, added: Additions
    ) -> NewConversions:
        """Insert new conversions, and count those whose click is there by now."""
        new = NewConversions([], 0, 0)
        if batch.conversions:
            events = [entry.event for entry in batch.conversions]
            keys = await find_keys(connection, events)
            await ensure_days(connection, self._partitions, {event.occurred_at.date() for event in events})
            new = await self._conversions.insert_new(
                connection,
                batch.conversions,
                CatalogKeys(keys["banner"], keys["placement"], keys["campaign"]),
            )
        # Offers with a new conversion, a new click, or a click whose impression has come.
        requests = {one.event.request_id.int for one in new.kept}
        requests |= {one.int for row in added.clicks if (one := row.event.request_id) is not None}
        if added.clicks_now_seen:
            requests |= {request for request, _ in state.offers.clicks_alone}
        await self._conversions.settle(connection, [UUID(int=one) for one in sorted(requests)])
        return new


def _build_result(added: Additions, conversions: NewConversions) -> BatchResult:
    return BatchResult(
        counted=added.size + len(conversions.kept),
        repeated=added.repeated + conversions.repeated,
        dropped=added.dropped + conversions.dropped,
    )
