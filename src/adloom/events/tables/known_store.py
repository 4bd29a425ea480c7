"""What the tables know of a batch before it is folded: keys of the catalog, and which events they have."""

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from adloom.events.log.entry import parse_entry_id
from adloom.events.log.event import Event
from adloom.events.tables.apply_batch import CLICKS, IMPRESSIONS, KINDS, Additions, EventBatch, StoredState
from adloom.events.tables.known_names import DedupFilter
from adloom.events.tables.offer_marks_store import OfferMarks
from adloom.events.tables.partition_store import day_start
from adloom.runtime.postgres import Connection

# An event is at most a day old when it is taken, and named by its correlation id for a week.
KNOWN_FOR: Final = timedelta(days=8)
# Clocks may jump. So besides the days that clocks tell, those are looked into that were written last,
# in the order of the ledger, which goes on whatever clocks say.
WRITTEN_DAYS_MIN: Final = 10

CATALOG: Final = """
    SELECT 'banner' AS noun, public_id AS name, id FROM banners WHERE public_id = ANY ($1::uuid[])
    UNION ALL
    SELECT 'placement', public_id, id FROM placements_ever WHERE public_id = ANY ($2::uuid[])
    UNION ALL
    SELECT 'campaign', public_id, id FROM campaigns WHERE public_id = ANY ($3::uuid[])
"""
ANYBODY_ERASED: Final = "SELECT EXISTS (SELECT FROM erased_users)"
ERASED: Final = "SELECT user_id, erased_at FROM erased_users WHERE user_id = ANY ($1::uuid[])"
_WRITTEN_SINCE: Final = """
    SELECT least(
        (SELECT min(day) FROM {schema}.event_days WHERE last_entry_ms >= $1),
        (SELECT min(day) FROM (
            SELECT day FROM {schema}.event_days ORDER BY last_entry_ms DESC, day DESC LIMIT $2
        ) AS written_last)
    ) AS day
"""
_TAKEN: Final = """
    SELECT correlation_id FROM {schema}.{table}
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at >= $2
"""
_DAYS: Final = """
    SELECT to_regclass($1::text)::oid, ARRAY (SELECT day FROM {schema}.event_days WHERE day >= $2)
"""
_NAMES: Final = """
    SELECT correlation_id FROM {schema}.{kind}_{day:%Y%m%d} WHERE correlation_id > $1 ORDER BY correlation_id LIMIT $2
"""


class StateLookup:
    """Looks a batch up in the tables of a schema."""

    def __init__(self, schema: str, names: DedupFilter | None = None) -> None:
        self._schema = schema
        self._names = names
        self._written_since = _WRITTEN_SINCE.format(schema=schema)
        self._taken = {kind: _TAKEN.format(schema=schema, table=kind) for kind in KINDS}
        self._days = _DAYS.format(schema=schema)
        self._offers = OfferMarks(schema)

    async def find_start(self, connection: Connection, batch: EventBatch) -> datetime:
        """Tell the moment from which on the tables are looked into for a batch."""
        events = batch.events
        first_entry_ms, _ = parse_entry_id(batch.first_entry_id)
        heard_at = datetime.fromtimestamp(first_entry_ms / 1000, UTC)
        oldest = min(
            min(heard_at, *(event.received_at for event in events)) - KNOWN_FOR,
            *(event.occurred_at for event in events),
        )
        written = await connection.fetchval(
            self._written_since, first_entry_ms - KNOWN_FOR // timedelta(milliseconds=1), WRITTEN_DAYS_MIN
        )
        return oldest if written is None else min(oldest, day_start(written))

    async def look_up(
        self, connection: Connection, batch: EventBatch, since: datetime, *, cursor: str
    ) -> StoredState:
        """Tell what the tables know of a batch that begins at a cursor."""
        keys = await _catalog(connection, batch.events)
        days = await self._begin(connection, since, cursor)
        return StoredState(
            banners=keys["banner"],
            placements=keys["placement"],
            campaigns=keys["campaign"],
            erased_at=await _erased(connection, batch.events),
            impressions=await self._known(connection, IMPRESSIONS, batch.impressions, since, days),
            clicks=await self._known(connection, CLICKS, batch.clicks, since, days),
            offers=await self._offers.look_up(connection, batch, since),
            days=days,
        )

    async def read_more_ids(self, connection: Connection, added: Additions, days: Collection[date]) -> None:
        """Read some of the names that are not remembered yet, so that once none need be looked up."""
        if self._names is None or (part := self._names.next_unread(added, days)) is None:
            return
        statement = _NAMES.format(schema=self._schema, kind=part.kind, day=part.day)
        try:
            names = [row[0] for row in await connection.fetch(statement, part.after, part.count_max)]
        except asyncpg.UndefinedTableError:
            names = []  # The day was dropped; what was counted of it is still known.
        self._names.add_read(part, names)

    async def _begin(self, connection: Connection, since: datetime, cursor: str) -> frozenset[date]:
        """Tell the days that have rows, where that is asked for."""
        if self._names is None:
            return frozenset()
        row = await connection.fetchrow(self._days, f"{self._schema}.{IMPRESSIONS}", since.date())
        assert row is not None
        table, days = row
        self._names.begin(cursor=cursor, table=table)
        self._names.drop_before(since.date())
        return frozenset(days)

    async def _known(
        self,
        connection: Connection,
        kind: str,
        events: Sequence[tuple[str, Event]],
        since: datetime,
        days: Collection[date],
    ) -> frozenset[str]:
        names: Sequence[str] = sorted({event.correlation_id for _, event in events})
        if self._names is not None:
            names = self._names.select_doubtful(kind, names, days)
        if not names:
            return frozenset()
        return frozenset([row[0] for row in await connection.fetch(self._taken[kind], names, since)])


async def _catalog(connection: Connection, events: Sequence[Event]) -> dict[str, dict[int, int]]:
    keys: dict[str, dict[int, int]] = {"banner": {}, "placement": {}, "campaign": {}}
    banners = {event.banner_id.int: event.banner_id for event in events}
    placements = {event.placement_id.int: event.placement_id for event in events}
    campaigns = {one.int: one for event in events if (one := event.campaign_id) is not None}
    rows = await connection.fetch(
        CATALOG, list(banners.values()), list(placements.values()), list(campaigns.values())
    )
    for noun, name, key in rows:
        keys[noun][name.int] = key
    return keys


async def _erased(connection: Connection, events: Sequence[Event]) -> dict[UUID, datetime]:
    users = {one.int: one for event in events if (one := event.user_id) is not None}
    if not users or not await connection.fetchval(ANYBODY_ERASED):
        return {}
    rows = await connection.fetch(ERASED, list(users.values()))
    return {row["user_id"]: row["erased_at"] for row in rows}
