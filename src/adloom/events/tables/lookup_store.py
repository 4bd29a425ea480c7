"""SQL of what the event tables hold of a batch before it is applied: catalog keys, known ids, offers, erased users."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from adloom.events.cursor_store import find_erased_users
from adloom.events.log.event import Conversion, Event, parse_entry_id
from adloom.events.log.names import OFFER_NAMES, find_offer_name, list_names
from adloom.events.ports import EntryOf
from adloom.events.tables.apply_batch import (
    CLICKS,
    GOOD,
    IMPRESSIONS,
    KINDS,
    Additions,
    EventBatch,
    Offer,
    StoredOffers,
    TableState,
)
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.partition_store import compute_day_start
from adloom.runtime.postgres import Connection, Record

# An event is at most a day old when it is accepted, and named by its correlation id for a week.
KNOWN_FOR: Final = timedelta(days=8)
# Clocks may jump. So besides the days that clocks name, the days that were written last are looked into,
# in the order of the log, which does not depend on clocks.
WRITTEN_DAYS_MIN: Final = 10

CATALOG: Final = """
    SELECT 'banner' AS noun, public_id AS name, id FROM banners WHERE public_id = ANY ($1::uuid[])
    UNION ALL
    SELECT 'placement', public_id, id FROM placements_ever WHERE public_id = ANY ($2::uuid[])
    UNION ALL
    SELECT 'campaign', public_id, id FROM campaigns WHERE public_id = ANY ($3::uuid[])
"""
ANYBODY_ERASED: Final = "SELECT EXISTS (SELECT FROM erased_users)"
_WRITTEN_SINCE: Final = """
    SELECT least(
        (SELECT min(day) FROM {schema}.event_days WHERE last_entry_ms >= $1),
        (SELECT min(day) FROM (
            SELECT day FROM {schema}.event_days ORDER BY last_entry_ms DESC, day DESC LIMIT $2
        ) AS written_last)
    ) AS day
"""
_KNOWN_IDS: Final = """
    SELECT correlation_id FROM {schema}.{kind}
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at >= $2
"""
_DAYS: Final = """
    SELECT to_regclass($1::text)::oid, ARRAY (SELECT day FROM {schema}.event_days WHERE day >= $2)
"""
# With the names of their offers.
_IDS_OF_DAY: Final = """
    SELECT correlation_id, $3::text || request_id || ':' || slot
      FROM {schema}.{kind}_{day:%Y%m%d} WHERE correlation_id > $1 ORDER BY correlation_id LIMIT $2
"""
# An offer has at most one good event of a kind, and a bad one before it, that are not second ones: however
# often somebody repeats theirs, the answer is no longer than that. The conditions equal those of the indexes,
# word for word. Whether an event is good depends on its own marks, not on the other events of its offer.
# Ids come as one text, which is read once for all days.
_IMPRESSIONS_OF_OFFERS: Final = """
    SELECT request_id, slot, coalesce(marks <@ $3::text[], true) AS is_good, NULL AS click_alone
      FROM {schema}.banner_impressions
     WHERE request_id = ANY ((SELECT $1::text::uuid[])::uuid[]) AND occurred_at >= $2
       AND (marks && '{{second_impression,second_click}}') IS NOT TRUE
    UNION ALL
    SELECT request_id, slot, NULL, correlation_id FROM {schema}.banner_clicks
     WHERE request_id = ANY ((SELECT $1::text::uuid[])::uuid[]) AND occurred_at >= $2
       AND marks @> '{{click_without_impression}}'
"""
_CLICKS_OF_OFFERS: Final = """
    SELECT request_id, slot, coalesce(marks <@ $3::text[], true) AS is_good FROM {schema}.banner_clicks
     WHERE request_id = ANY ((SELECT $1::text::uuid[])::uuid[]) AND occurred_at >= $2
       AND (marks && '{{second_impression,second_click}}') IS NOT TRUE
"""


class StateLookup:
    """Looks a batch up in the tables of a schema."""

    def __init__(self, schema: str, dedup: DedupFilter | None = None) -> None:
        self._schema = schema
        self._dedup = dedup
        self._known_ids = {kind: _KNOWN_IDS.format(schema=schema, kind=kind) for kind in KINDS}

    async def find_start(self, connection: Connection, batch: EventBatch) -> datetime:
        """Return the time from which on the tables are searched for a batch."""
        events = batch.events
        first_entry_ms, _ = parse_entry_id(batch.first_entry_id)
        appended_at = datetime.fromtimestamp(first_entry_ms / 1000, UTC)
        received_at = min([event.received_at for event in events])
        occurred_at = min([event.occurred_at for event in events])
        oldest = min(min(appended_at, received_at) - KNOWN_FOR, occurred_at)
        written = await connection.fetchval(
            _WRITTEN_SINCE.format(schema=self._schema),
            first_entry_ms - KNOWN_FOR // timedelta(milliseconds=1),
            WRITTEN_DAYS_MIN,
        )
        return oldest if written is None else min(oldest, compute_day_start(written))

    async def look_up(
        self, connection: Connection, batch: EventBatch, since: datetime, *, cursor: str
    ) -> TableState:
        keys = await find_keys(connection, batch.events)
        days = await self._begin_dedup(connection, since, cursor)
        doubtful = self._select_doubtful(batch.events, days)
        requests = _list_requests(batch.events, set[str]().union(*doubtful.values()))
        return TableState(
            banners=keys["banner"],
            placements=keys["placement"],
            campaigns=keys["campaign"],
            erased_at=await find_erased(connection, batch),
            impressions=await self._find_known(connection, IMPRESSIONS, batch.impressions, since, doubtful),
            clicks=await self._find_known(connection, CLICKS, batch.clicks, since, doubtful),
            offers=await self._find_offers(connection, batch, since, requests),
            days=days,
        )

    async def read_more_ids(self, connection: Connection, added: Additions, days: Collection[date]) -> None:
        """Read some ids into the dedup filter, so that in the end none need be looked up."""
        if self._dedup is None or (part := self._dedup.find_next_unread(added, days)) is None:
            return
        statement = _IDS_OF_DAY.format(schema=self._schema, kind=part.kind, day=part.day)
        try:
            rows = await connection.fetch(statement, part.after, part.count_max, OFFER_NAMES)
        except asyncpg.UndefinedTableError:
            rows = []  # The day was dropped; the filter still knows what was counted of it.
        self._dedup.add_read(
            part,
            [name for name, _ in rows],
            offers=[offer for name, offer in rows if offer is not None and offer != name],
        )

    async def _begin_dedup(self, connection: Connection, since: datetime, cursor: str) -> frozenset[date]:
        """Return the days that have rows; none without a filter, which alone needs them."""
        if self._dedup is None:
            return frozenset()
        row = await connection.fetchrow(
            _DAYS.format(schema=self._schema), f"{self._schema}.{IMPRESSIONS}", since.date()
        )
        assert row is not None
        table, days = row
        self._dedup.begin(cursor=cursor, table=table)
        self._dedup.drop_before(since.date())
        return frozenset(days)

    def _select_doubtful(self, events: Sequence[Event], days: Collection[date]) -> dict[str, Collection[str]]:
        """Return the names of events and of their offers that may have rows, by kind; nearly all are new."""
        names = set(list_names(events))
        if self._dedup is None:
            return dict.fromkeys(KINDS, names)
        return {kind: self._dedup.select_doubtful(kind, names, days) for kind in KINDS}

    async def _find_known(
        self,
        connection: Connection,
        kind: str,
        entries: Sequence[EntryOf[Event]],
        since: datetime,
        doubtful: Mapping[str, Collection[str]],
    ) -> frozenset[str]:
        if not (names := doubtful[kind]):
            return frozenset()
        ids = {name for entry in entries if (name := entry.event.correlation_id) in names}
        if not ids:
            return frozenset()
        # Sorted keys are cheaper to look up.
        rows = await connection.fetch(self._known_ids[kind], sorted(ids), since)
        return frozenset([row[0] for row in rows])

    async def _find_offers(
        self, connection: Connection, batch: EventBatch, since: datetime, requests: Collection[int]
    ) -> StoredOffers:
        """Return what there is of the offers of some requests."""
        impressions: dict[Offer, bool] = {}
        clicks_alone: dict[Offer, list[str]] = {}
        rows = await _fetch_of_offers(
            connection,
            _IMPRESSIONS_OF_OFFERS.format(schema=self._schema),
            requests,
            since,
        )
        for request_id, slot, is_good, click_alone in rows:
            offer = (request_id.int, slot)
            if click_alone is None:
                impressions[offer] = is_good or impressions.get(offer, False)
            else:
                clicks_alone.setdefault(offer, []).append(click_alone)
        clicks: dict[Offer, bool] = {}
        clicked = {one.int for click in batch.clicks if (one := click.event.request_id) is not None}
        for request_id, slot, is_good in await _fetch_of_offers(
            connection, _CLICKS_OF_OFFERS.format(schema=self._schema), clicked.intersection(requests), since
        ):
            offer = (request_id.int, slot)
            clicks[offer] = is_good or clicks.get(offer, False)
        return StoredOffers(impressions=impressions, clicks=clicks, clicks_alone=clicks_alone)


def _list_requests(events: Sequence[Event], names: Collection[str]) -> set[int]:
    """Return the numbers of the requests of offers with these names."""
    if not names:
        return set()
    return {
        event.request_id.int
        for event in events
        if event.request_id is not None
        and event.slot is not None
        and find_offer_name(event.correlation_id, event.request_id, event.slot) in names
    }


async def find_keys(
    connection: Connection, events: Sequence[Event | Conversion]
) -> dict[str, dict[int, int]]:
    """Return the keys of what the events name, by noun and the number of its id."""
    keys: dict[str, dict[int, int]] = {"banner": {}, "placement": {}, "campaign": {}}
    # By their numbers: UUIDs are much slower to compare.
    banners = {event.banner_id.int: event.banner_id for event in events}
    placements = {event.placement_id.int: event.placement_id for event in events}
    campaigns = {one.int: one for event in events if (one := event.campaign_id) is not None}
    rows = await connection.fetch(
        CATALOG, list(banners.values()), list(placements.values()), list(campaigns.values())
    )
    for noun, name, key in rows:
        keys[noun][name.int] = key
    return keys


async def find_erased(connection: Connection, batch: EventBatch) -> dict[UUID, datetime]:
    """Return the users of a batch who were erased, and when."""
    users = {one.int: one for one in batch.users}
    if not users or not await connection.fetchval(ANYBODY_ERASED):
        return {}
    return await find_erased_users(connection, users.values())


async def _fetch_of_offers(
    connection: Connection, statement: str, requests: Collection[int], since: datetime
) -> Sequence[Record]:
    return await connection.fetch(statement, _write_ids(requests), since, GOOD) if requests else []


def _write_ids(numbers: Collection[int]) -> str:
    """Write the numbers of ids as an array of PostgreSQL, sorted, because that is cheaper to look up.

    For a list of ids the driver takes some microseconds each: it looks whether one is a list itself.
    """
    return f"{{{','.join([f'{number:032x}' for number in sorted(numbers)])}}}"
