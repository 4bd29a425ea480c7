"""The law of the event tables: for any events in any order and batches, they equal a plain reference."""

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from adloom.core.ids import BannerId, CampaignId, PlacementId, digest_user
from adloom.events.log.event import BEGINNING, Click, Event, Impression, Mark, parse_entry_id
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, UNKNOWN_ID
from tests.events.catalog import insert_banner, insert_catalog, insert_placement

OTHER_BANNER = BannerId(UUID("01890000-0000-7000-8000-00000000000d"))
DELETED_PLACEMENT = PlacementId(UUID("01890000-0000-7000-8000-0000000000a2"))
REQUESTS = [UUID(f"01890000-0000-7000-8000-0000000000e{number}") for number in range(2)]
ERASED_USER, USER = UUID(int=1), UUID(int=2)
ERASED_AT = NOW
KINDS = {"banner_impressions": Impression, "banner_clicks": Click}
T = TypeVar("T")
Key = tuple[datetime, int, int, int | None, str | None, str | None]

# Around midnight, and 40 days off, where our clocks would be after a jump.
moments = st.sampled_from(
    [
        *[NOW] * 4,
        NOW + timedelta(minutes=59, seconds=59, microseconds=999_999),
        NOW.replace(hour=23, minute=59, second=59, microsecond=999_999),
        NOW.replace(hour=0) + timedelta(days=1),
        NOW - timedelta(days=40),
        NOW + timedelta(days=40),
    ]
)
offers = st.sampled_from([(None, None), *((request, slot) for request in REQUESTS for slot in (0, 1))])


def mostly(ordinary: T, *others: T) -> st.SearchStrategy[T]:
    return st.sampled_from([*[ordinary] * 8, *others])


@st.composite
def events(draw: st.DrawFn) -> Event:
    request_id, slot = draw(offers)
    received_at = draw(moments)
    attributes: dict[str, Any] = {
        "correlation_id": draw(st.sampled_from("abcdefghijkl")),
        "banner_id": draw(mostly(BANNER, OTHER_BANNER, BannerId(UNKNOWN_ID))),
        "placement_id": draw(mostly(PLACEMENT, DELETED_PLACEMENT, PlacementId(UNKNOWN_ID))),
        "campaign_id": draw(mostly(CAMPAIGN, None, CampaignId(UNKNOWN_ID))),
        "occurred_at": received_at - draw(st.sampled_from([timedelta(), timedelta(hours=23)])),
        "received_at": received_at,
        "request_id": request_id,
        "slot": slot,
        "session_id": "a session",
        "user_id": draw(mostly(None, USER, ERASED_USER)),
        "device_type": draw(mostly("mobile", None, "a toaster")),
        "country_code": draw(mostly("DE", None)),
        "page_url": "https://pub.example/ü",
        "marks": draw(
            mostly(
                (),
                (Mark.OCCURRED_AT_REPLACED,),
                (Mark.CRAWLER,),
                *([(Mark.UNBOUND,), (Mark.UNBOUND, Mark.NOT_ASSIGNED)] if request_id is None else []),
            )
        ),
    }
    if draw(st.booleans()):
        return Impression(**attributes, referrer_url="https://r.example")
    return Click(**attributes, destination_url="https://d.example")


@st.composite
def logs(draw: st.DrawFn) -> list[list[DecodedEntry]]:
    """Draw events, repeat some of them, shuffle them, and split them into batches."""
    drawn = draw(st.lists(events(), min_size=1, max_size=16))
    again = draw(st.lists(st.sampled_from(drawn), max_size=6))
    order = draw(st.permutations([*drawn, *again]))
    steps = st.sampled_from([timedelta(), timedelta(milliseconds=1), timedelta(hours=10)])
    at, records = NOW, list[DecodedEntry]()
    for sequence, event in enumerate(order, start=1):
        at += draw(steps)
        records.append(DecodedEntry(f"{int(at.timestamp() * 1000)}-{sequence}", event))
    cuts = sorted(draw(st.sets(st.integers(1, len(records)), max_size=6)) | {0, len(records)})
    return [records[start:end] for start, end in itertools.pairwise(cuts)]


def expected_rows(records: Sequence[DecodedEntry], keys: dict[UUID, int]) -> dict[str, list[dict[str, Any]]]:
    """Compute the rows of a log, in the simplest way."""
    tables: dict[str, list[dict[str, Any]]] = {"banner_impressions": [], "banner_clicks": []}
    for record in records:
        entry_id, event = record.entry_id, record.event
        assert isinstance(event, Impression | Click)
        rows = tables["banner_impressions" if isinstance(event, Impression) else "banner_clicks"]
        is_known = event.banner_id in keys and event.placement_id in keys
        if is_known and all(row["correlation_id"] != event.correlation_id for row in rows):
            rows.append(expected_row(entry_id, event, keys))
    mark_offers(tables)
    for row in (row for rows in tables.values() for row in rows):
        row["is_valid"] = all(mark == Mark.OCCURRED_AT_REPLACED for mark in row["marks"])
    return tables


def expected_row(entry_id: str, event: Impression | Click, keys: dict[UUID, int]) -> dict[str, Any]:
    is_erased = event.user_id == ERASED_USER and event.received_at <= ERASED_AT
    row = {
        "correlation_id": event.correlation_id,
        "banner_id": keys[event.banner_id],
        "placement_id": keys[event.placement_id],
        "campaign_id": keys.get(event.campaign_id or UNKNOWN_ID),
        "session_id": None if is_erased else event.session_id,
        "user_id": None if is_erased else event.user_id,
        "device_type": event.device_type,
        "country_code": event.country_code,
        "page_url": None if is_erased else event.page_url,
        "occurred_at": event.occurred_at,
        "received_at": event.received_at,
        "request_id": event.request_id,
        "slot": event.slot,
        "client_network": None,
        "marks": {str(mark) for mark in event.marks},
        "entry": parse_entry_id(entry_id),
    }
    if isinstance(event, Impression):
        return row | {"referrer_url": None if is_erased else event.referrer_url}
    return row | {"destination_url": None if is_erased else event.destination_url}


def mark_offers(tables: dict[str, list[dict[str, Any]]]) -> None:
    impressions, clicks = tables["banner_impressions"], tables["banner_clicks"]
    for rows, second in ((impressions, Mark.SECOND_IMPRESSION), (clicks, Mark.SECOND_CLICK)):
        good = [row["marks"] <= {Mark.OCCURRED_AT_REPLACED} for row in rows]
        for place, row in enumerate(rows):
            earlier = [at for at in range(place) if row["request_id"] and offer(rows[at]) == offer(row)]
            # A valid event is a second one only after a valid one.
            if any(good[at] or not good[place] for at in earlier):
                row["marks"].add(second)
    for row in clicks:
        if row["request_id"] and all(offer(row) != offer(impression) for impression in impressions):
            row["marks"].add(Mark.CLICK_WITHOUT_IMPRESSION)


def offer(row: dict[str, Any]) -> tuple[UUID | None, int | None]:
    return row["request_id"], row["slot"]


def expected_counts(tables: dict[str, list[dict[str, Any]]]) -> dict[Key, list[int]]:
    counts: dict[Key, list[int]] = {}
    for place, rows in enumerate(tables.values()):
        for row in rows:
            hour = row["occurred_at"].replace(minute=0, second=0, microsecond=0)
            device = row["device_type"] if row["device_type"] == "mobile" else None
            key = (
                hour,
                row["banner_id"],
                row["placement_id"],
                row["campaign_id"],
                row["country_code"],
                device,
            )
            if Mark.NOT_ASSIGNED in row["marks"]:
                continue
            count = counts.setdefault(key, [0] * 6)
            if Mark.UNBOUND in row["marks"]:
                count[place + 4] += 1
                continue
            count[place] += 1
            count[place + 2] += not row["is_valid"]
    return counts


class Tables:
    """The event tables, read back."""

    def __init__(self, pool: Pool, keys: dict[UUID, int]) -> None:
        self.pool = pool
        self.keys = keys
        self.workers = [EventTables(pool)]

    async def empty(self) -> None:
        """Start again, with two workers that have a dedup filter and one that has none."""
        filters = [DedupFilter(segment_ids=8, batch_min=1, chunk_ids=2) for _ in range(2)]
        self.workers = [EventTables(self.pool, dedup=dedup) for dedup in (*filters, None)]
        for table in ("banner_impressions", "banner_clicks", "event_counts", "event_days"):
            await self.pool.execute(f"DELETE FROM events.{table}")  # noqa: S608 - our own names
        await self.pool.execute("DELETE FROM projection_cursors")
        assert await self.workers[0].read_cursor() == BEGINNING

    async def rows(self, table: str) -> list[dict[str, Any]]:
        rows = [dict(row) for row in await self.pool.fetch(f"SELECT * FROM events.{table} ORDER BY id")]  # noqa: S608 - our own names
        for row in rows:
            row["entry"] = (row.pop("entry_ms"), row.pop("entry_seq"))
            row["marks"] = set(row["marks"] or ())
            del row["id"]
        return sorted(rows, key=lambda row: row["entry"])

    async def counts(self) -> dict[Key, list[int]]:
        rows = await self.pool.fetch(
            "SELECT hour, banner_id, placement_id, campaign_id, country_code, device_type,"
            " impressions, clicks, invalid_impressions, invalid_clicks, unbound_impressions, unbound_clicks"
            " FROM events.event_counts"
        )
        return {tuple(row)[:6]: list(row)[6:] for row in rows}

    async def days(self) -> dict[date, int]:
        return {day: events for day, events, *_ in await self.pool.fetch("SELECT * FROM events.event_days")}


@pytest.fixture
async def tables(pool: Pool) -> Tables:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    await insert_placement(pool, DELETED_PLACEMENT)
    keys = {
        row["public_id"]: row["id"]
        for noun in ("banners", "placements", "campaigns")
        for row in await pool.fetch(f"SELECT public_id, id FROM {noun}")  # noqa: S608 - our own names
    }
    await pool.execute("DELETE FROM placements WHERE public_id = $1", DELETED_PLACEMENT)
    await pool.execute(
        "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)",
        digest_user(ERASED_USER),
        ERASED_AT,
    )
    return Tables(pool, keys)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=logs(), worker_numbers=st.lists(st.integers(0, 2)), is_replayed=st.booleans())
async def test_the_tables_equal_the_log_for_any_batches_and_repeats(
    tables: Tables, batches: list[list[DecodedEntry]], worker_numbers: list[int], *, is_replayed: bool
) -> None:
    await tables.empty()
    cursor, results = BEGINNING, list[BatchResult]()

    for batch, number in zip(batches, [*worker_numbers, *[0] * len(batches)], strict=False):
        after, cursor = cursor, batch[-1].entry_id
        results.append(await tables.workers[number].commit(batch, after=after, cursor=cursor))
        with pytest.raises(CursorMovedError):
            await tables.workers[number].commit(batch, after=after, cursor=cursor)
    records = [record for batch in batches for record in batch]
    if is_replayed:
        again = [
            DecodedEntry(f"{parse_entry_id(cursor)[0] + 1}-{place}", one.event)
            for place, one in enumerate(records)
        ]
        await tables.workers[0].commit(again, after=cursor, cursor=again[-1].entry_id)

    expected = expected_rows(records, tables.keys)
    assert {table: await tables.rows(table) for table in KINDS} == expected
    assert await tables.counts() == expected_counts(expected)
    days = Counter(row["occurred_at"].astimezone(UTC).date() for rows in expected.values() for row in rows)
    assert await tables.days() == days
    assert sum(one.counted for one in results) == days.total()
    assert sum(one.counted + one.repeated + one.dropped for one in results) == len(records)
