"""Batches of the log become rows and counts in PostgreSQL."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_address, ip_interface
from typing import Any
from uuid import UUID

import pytest

from adloom.core.errors import UnavailableError
from adloom.core.ids import RequestId, digest_user
from adloom.core.money import Micros
from adloom.events.log.event import BEGINNING, Event, Mark, Served
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, PoisonEntryError
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool, open_pool
from tests.events.builders import (
    BANNER,
    CAMPAIGN,
    NOW,
    PLACEMENT,
    REQUEST,
    a_click,
    an_impression,
)
from tests.events.catalog import insert_catalog

OFFER: dict[str, Any] = {"request_id": REQUEST, "slot": 0}
USER = UUID(int=7)
DAY = timedelta(days=1)
SEQUENTIAL_SCANS = """
    SELECT sum(seq_scan)::int FROM pg_stat_user_tables WHERE schemaname = 'events' AND relname LIKE 'banner_%\\_20%'
"""


class Ledger:
    """Gives events entry ids in order, and applies them batch by batch."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.tables = EventTables(pool)
        self.cursor = BEGINNING
        self._sequence = 0

    async def apply(self, *events: Event | Served, appended_at: datetime = NOW) -> BatchResult:
        """Apply events as one batch, with entry ids of the given time."""
        records = self.records(events, appended_at)
        await self.tables.read_cursor()
        after, self.cursor = self.cursor, records[-1].entry_id
        return await self.tables.commit(records, after=after, cursor=self.cursor)

    def records(self, events: Sequence[Event | Served], appended_at: datetime = NOW) -> list[DecodedEntry]:
        start = self._sequence
        self._sequence += len(events)
        millis = int(appended_at.timestamp() * 1000)
        return [DecodedEntry(f"{millis}-{start + number}", event) for number, event in enumerate(events)]

    async def rows(self, table: str = "banner_impressions") -> list[dict[str, Any]]:
        rows = await self.pool.fetch(f"SELECT * FROM events.{table} ORDER BY entry_ms, entry_seq")  # noqa: S608 - our own name
        return [dict(row) for row in rows]

    async def marks(self, table: str) -> dict[str, list[str]]:
        return {row["correlation_id"]: row["marks"] or [] for row in await self.rows(table)}

    async def counts(self) -> tuple[int, int, int, int]:
        """Return impressions, clicks, and how many of each are invalid."""
        row = await self.pool.fetchrow(
            "SELECT sum(impressions)::int, sum(clicks)::int, sum(invalid_impressions)::int,"
            " sum(invalid_clicks)::int FROM events.event_counts"
        )
        assert row is not None
        return row[0], row[1], row[2], row[3]

    async def days(self) -> dict[date, int]:
        rows = await self.pool.fetch("SELECT day, events FROM events.event_days ORDER BY day")
        return {row["day"]: row["events"] for row in rows}


@pytest.fixture
async def ledger(pool: Pool) -> Ledger:
    await insert_catalog(pool)
    return Ledger(pool)


# --- rows and counts


async def test_events_become_rows_counts_and_days(ledger: Ledger) -> None:
    result = await ledger.apply(
        an_impression("a"), an_impression("b"), a_click("a"), an_impression("c", campaign_id=None)
    )

    assert result == BatchResult(counted=4)
    assert [row["correlation_id"] for row in await ledger.rows()] == ["a", "b", "c"]
    assert await ledger.counts() == (3, 1, 0, 0)
    assert await ledger.days() == {NOW.date(): 4}


async def test_a_row_has_all_fields_of_the_event_and_its_entry(ledger: Ledger) -> None:
    attributes = {
        "request_id": REQUEST,
        "slot": 255,
        "session_id": "s" * 128,
        "user_id": USER,
        "device_type": "a toaster",
        "country_code": "DE",
        "page_url": "https://pub.example/ü",
        "received_at": NOW + timedelta(seconds=3),
    }
    network = {"client_network": "203.0.113.0/24", "marks": (Mark.DATA_CENTER,)}
    await ledger.apply(
        an_impression("i", referrer_url="https://r.example", **attributes, **network),
        a_click("c", destination_url="https://d.example", client_network="2001:db8::7", **attributes),
    )

    [impression], [click] = await ledger.rows(), await ledger.rows("banner_clicks")
    entry = {"entry_ms": int(NOW.timestamp() * 1000)}
    assert (
        impression.items()
        >= (attributes | entry | {"entry_seq": 0, "referrer_url": "https://r.example"}).items()
    )
    assert (impression["client_network"], impression["marks"]) == (
        ip_interface("203.0.113.0/24"),
        ["data_center"],
    )
    assert (
        click.items()
        >= (attributes | entry | {"entry_seq": 1, "destination_url": "https://d.example"}).items()
    )
    assert (click["marks"], click["is_valid"], impression["is_valid"]) == (None, True, False)
    assert click["client_network"] == ip_address("2001:db8::7")


async def test_a_served_offer_makes_no_row(ledger: Ledger) -> None:
    served = Served(
        request_id=RequestId(REQUEST),
        slot=0,
        banner_id=BANNER,
        placement_id=PLACEMENT,
        campaign_id=CAMPAIGN,
        placement_type="full_static",
        served_at=NOW,
        final_price=Micros(1),
    )

    assert await ledger.apply(served) == BatchResult()
    assert await ledger.apply(served, an_impression()) == BatchResult(counted=1)
    assert await ledger.tables.read_cursor() == ledger.cursor


@pytest.mark.parametrize(
    "poison",
    [
        an_impression(country_code="too long for its column"),
        a_click(page_url="a\0b"),
        an_impression("a\0b"),
        an_impression(client_network="no network"),
        a_click(slot=40_000, request_id=REQUEST),
    ],
)
async def test_an_event_that_fits_no_column_is_poison_and_leaves_no_rows(
    ledger: Ledger, poison: Event
) -> None:
    await ledger.tables.read_cursor()

    with pytest.raises(PoisonEntryError):
        await ledger.tables.commit(
            ledger.records([an_impression("good"), poison]), after=BEGINNING, cursor="9-9"
        )

    assert await ledger.rows() == []
    assert await ledger.tables.read_cursor() == BEGINNING


async def test_a_cursor_that_another_worker_moved_refuses_the_batch(ledger: Ledger) -> None:
    await ledger.tables.read_cursor()

    with pytest.raises(CursorMovedError):
        await ledger.tables.commit(ledger.records([an_impression()]), after="5-0", cursor="6-0")

    assert await ledger.rows() == []


async def test_a_partition_that_disappears_during_a_write_raises_unavailable(ledger: Ledger) -> None:
    await ledger.pool.execute(
        "CREATE OR REPLACE FUNCTION ensure_event_day(in_schema name, of_day date) RETURNS void LANGUAGE sql AS 'SELECT'"
    )

    with pytest.raises(UnavailableError, match="is not there"):
        await ledger.apply(an_impression())


# --- the same event again


@pytest.mark.parametrize("days", [1, 7])
async def test_an_event_repeated_days_later_is_recognised_on_any_day(ledger: Ledger, days: int) -> None:
    first = an_impression("a", occurred_at=NOW - timedelta(hours=23, minutes=59), **OFFER)
    await ledger.apply(first, a_click("a", **OFFER))
    later = NOW + days * DAY

    again = {"occurred_at": later, "received_at": later}
    result = await ledger.apply(
        an_impression("a", **again),
        a_click("a", **again),
        an_impression("b", **again, **OFFER),
        appended_at=later,
    )

    assert result == BatchResult(counted=1, repeated=2)
    assert await ledger.marks("banner_impressions") == {"a": [], "b": [Mark.SECOND_IMPRESSION]}


# --- several events of one offer


@pytest.mark.parametrize("is_one_batch", [True, False])
async def test_the_first_valid_event_of_an_offer_counts_after_a_crawler_or_prefetch(
    ledger: Ledger, *, is_one_batch: bool
) -> None:
    first = [
        an_impression("a", **OFFER, marks=(Mark.PREFETCH,)),
        an_impression("again", **OFFER, marks=(Mark.PREFETCH,)),
        a_click("a", **OFFER, marks=(Mark.CRAWLER,)),
    ]
    then = [
        an_impression("b", **OFFER),
        an_impression("c", **OFFER),
        a_click("b", **OFFER),
        a_click("c", **OFFER, marks=(Mark.CRAWLER,)),
        a_click("d", **OFFER),
    ]

    for batch in [[*first, *then]] if is_one_batch else [first, then]:
        await ledger.apply(*batch)

    assert await ledger.marks("banner_impressions") == {
        "a": [Mark.PREFETCH],
        "again": [Mark.PREFETCH, Mark.SECOND_IMPRESSION],
        "b": [],
        "c": [Mark.SECOND_IMPRESSION],
    }
    assert await ledger.marks("banner_clicks") == {
        "a": [Mark.CRAWLER],
        "b": [],
        "c": [Mark.CRAWLER, Mark.SECOND_CLICK],
        "d": [Mark.SECOND_CLICK],
    }


async def test_a_click_is_marked_until_its_impression_comes(ledger: Ledger) -> None:
    marked = a_click("c", **OFFER, marks=(Mark.CRAWLER,), device_type="a toaster", country_code="DE")
    await ledger.apply(a_click("a", **OFFER), a_click("b", **OFFER), marked)
    assert await ledger.counts() == (0, 3, 0, 3)

    await ledger.apply(an_impression("a", **OFFER))

    assert await ledger.marks("banner_clicks") == {
        "a": [],
        "b": [Mark.SECOND_CLICK],
        "c": [Mark.CRAWLER, Mark.SECOND_CLICK],
    }
    assert [row["is_valid"] for row in await ledger.rows("banner_clicks")] == [True, False, False]
    assert await ledger.counts() == (1, 3, 0, 2)
    assert await ledger.pool.fetchval("SELECT corrections FROM events.event_days") == 1


async def test_within_a_batch_the_order_of_an_impression_and_its_click_does_not_matter(
    ledger: Ledger,
) -> None:
    await ledger.apply(a_click("a", **OFFER), an_impression("a", **OFFER))

    assert await ledger.marks("banner_clicks") == {"a": []}
    assert await ledger.counts() == (1, 1, 0, 0)
    assert await ledger.pool.fetchval("SELECT corrections FROM events.event_days") == 0


# --- erased users


async def test_events_before_an_erasure_are_counted_without_the_user(ledger: Ledger) -> None:
    await ledger.pool.execute(
        "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)", digest_user(USER), NOW
    )
    attributes = {"user_id": USER, "session_id": "s", "page_url": "https://p.example"}

    result = await ledger.apply(
        an_impression("a", referrer_url="https://r.example", **attributes),
        a_click("a", destination_url="https://d.example", **attributes),
        an_impression("after", received_at=NOW + timedelta(microseconds=1), **attributes),
    )

    assert result == BatchResult(counted=3)
    before, after = await ledger.rows()
    assert [before[name] for name in (*attributes, "referrer_url")] == [None] * 4
    assert after.items() >= attributes.items()
    [click] = await ledger.rows("banner_clicks")
    assert [click[name] for name in (*attributes, "destination_url")] == [None] * 4


# --- days and clocks


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Europe/Berlin", "America/New_York"])
async def test_days_and_hours_are_utc_in_any_time_zone_of_the_server(
    ledger: Ledger, database_url: str, zone: str
) -> None:
    midnight = datetime(2026, 11, 15, tzinfo=UTC)
    # In Berlin the hour from two to three comes twice in this night, in New York a week later.
    berlin, new_york = datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 11, 1, 5, tzinfo=UTC)
    moments = [
        midnight - timedelta(microseconds=1),
        midnight,
        *(dst + timedelta(minutes=30 + 60 * hours) for dst in (berlin, new_york) for hours in range(2)),
    ]
    async with open_pool(f"{database_url}?options=-ctimezone%3D{zone}", size_max=1) as pool:
        assert await pool.fetchval("SHOW timezone") == "UTC"
        await Ledger(pool).apply(
            *(an_impression(f"{moment}", occurred_at=moment, received_at=moment) for moment in moments)
        )

    assert await ledger.days() == {
        date(2026, 10, 25): 2,
        date(2026, 11, 1): 2,
        date(2026, 11, 14): 1,
        date(2026, 11, 15): 1,
    }
    rows = await ledger.pool.fetch(
        "SELECT tableoid::regclass::text, count(*)::int FROM events.banner_impressions GROUP BY 1"
    )
    assert {row[0].rpartition("_")[2]: row[1] for row in rows} == {
        f"{day:%Y%m%d}": count for day, count in (await ledger.days()).items()
    }
    hours = [
        row["hour"] for row in await ledger.pool.fetch("SELECT hour FROM events.event_counts ORDER BY hour")
    ]
    assert hours == sorted(moment.replace(minute=0, second=0, microsecond=0) for moment in moments)


@pytest.mark.parametrize("jump", [-400 * DAY, -30 * DAY, 30 * DAY, 400 * DAY])
@pytest.mark.parametrize("has_ledger_jumped", [True, False])
async def test_a_clock_jump_creates_partitions_and_counts_nothing_twice(
    ledger: Ledger, jump: timedelta, *, has_ledger_jumped: bool
) -> None:
    def at(moment: datetime) -> dict[str, Any]:
        return {"occurred_at": moment, "received_at": moment}

    # Entry ids never go back: after a jump ahead they stay ahead, and a jump back does not change them.
    ahead = max(NOW, NOW + jump) if has_ledger_jumped else NOW
    before = [an_impression("before", **at(NOW), **OFFER)]
    during = [an_impression("during", **at(NOW + jump)), a_click("during", **at(NOW + jump), **OFFER)]
    after = [an_impression("after", **at(NOW + DAY))]
    await ledger.apply(*before)
    await ledger.apply(*during, *before, appended_at=ahead)
    later = max(ahead, NOW + DAY)
    await ledger.apply(*after, *during, *before, appended_at=later)
    everything = [
        an_impression(name, **at(NOW + days * DAY))
        for days in (2, 6)
        for name in ("before", "during", "after")
    ]

    result = await ledger.apply(
        *everything, a_click("during", **at(NOW + 6 * DAY)), appended_at=max(ahead, NOW + 6 * DAY)
    )

    assert result == BatchResult(repeated=7)
    assert await ledger.counts() == (3, 1, 0, 0)
    assert await ledger.days() == dict(
        sorted({NOW.date(): 1, (NOW + jump).date(): 2, (NOW + DAY).date(): 1}.items())
    )


# --- the planner


async def test_a_partition_analyzed_while_almost_empty_is_not_scanned_sequentially(
    database_url: str,
) -> None:
    async with open_pool(database_url, size_max=1) as pool:
        await insert_catalog(pool)
        ledger = Ledger(pool)
        await ledger.apply(an_impression(**OFFER), a_click(**OFFER))
        await pool.execute("ANALYZE")
        before = await count_sequential_scans(pool)

        await ledger.apply(*(an_impression(f"{number}", **OFFER) for number in range(1000)))
        await ledger.apply(an_impression("new", **OFFER), a_click("new", **OFFER), a_click())

        assert await count_sequential_scans(pool) == before


async def count_sequential_scans(pool: Pool) -> int:
    """Count sequential scans of partitions, for the only connection of a pool; creating an index scans, too."""
    await pool.execute("SELECT pg_stat_force_next_flush()")
    return await pool.fetchval(SEQUENTIAL_SCANS)
