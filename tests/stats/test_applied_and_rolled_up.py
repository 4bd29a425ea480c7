"""Rollups of rows that the projection wrote: an impression after midnight makes a click of the day before valid."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.core.money import Micros
from adloom.events.log.event import Conversion, Event
from adloom.events.ports import DecodedEntry
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from adloom.stats.model import OF_READERS, Counts, Grouping, StatsQuestion, sum_rows
from adloom.stats.rollup import Rollup
from adloom.stats.store import read_statistics
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT, REQUEST, a_click, a_conversion, an_impression

DAY = date(2026, 11, 14)
BEFORE_MIDNIGHT = datetime(2026, 11, 14, 23, 59, 59, tzinfo=UTC)
AFTER_MIDNIGHT = datetime(2026, 11, 15, 0, 0, 1, tzinfo=UTC)


class Ledger:
    """Applies events as the worker does; each call is a batch."""

    def __init__(self, pool: Pool) -> None:
        self._tables = EventTables(pool)
        self._sequence = 0

    async def apply(self, *events: Event | Conversion) -> None:
        after = await self._tables.read_cursor()
        records: list[DecodedEntry] = []
        for event in events:
            self._sequence += 1
            records.append(DecodedEntry(f"{self._sequence}-0", event))
        await self._tables.commit(records, after=after, cursor=f"{self._sequence}-0")


@pytest.fixture
async def ledger(pool: Pool) -> Ledger:
    for statement, public_id in (
        (
            "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'B', 'https://x/')",
            BANNER,
        ),
        ("INSERT INTO campaigns (public_id, name) VALUES ($1, 'C')", CAMPAIGN),
        (
            "INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, 'p', 'P', 'full_slider')",
            PLACEMENT,
        ),
    ):
        await pool.execute(statement, public_id)
    return Ledger(pool)


async def counted(pool: Pool, *groupings: Grouping, day: date = DAY) -> Counts:
    question = StatsQuestion(first=day, last=day, groupings=groupings)
    return sum_rows(await read_statistics(pool, question, today=DAY + timedelta(days=2), rows_max=1_000))


async def test_statistics_follow_a_click_that_becomes_valid_after_its_day_was_rolled_up(
    pool: Pool, ledger: Ledger
) -> None:
    rollup = Rollup(pool, ManualClock(AFTER_MIDNIGHT))
    await ledger.apply(a_click("c", occurred_at=BEFORE_MIDNIGHT, request_id=REQUEST, slot=0))
    await rollup.roll_up(DAY)
    lonely = Counts(clicks=1, invalid_clicks=1)
    assert await counted(pool, Grouping.DAY) == await counted(pool, Grouping.HOUR) == lonely

    await ledger.apply(an_impression("i", occurred_at=AFTER_MIDNIGHT, request_id=REQUEST, slot=0))
    billed = Counts(clicks=1)
    assert await counted(pool, Grouping.DAY) == await counted(pool, Grouping.HOUR) == billed

    assert await rollup.roll_up(DAY, only_if_stale=True) is not None
    await pool.execute("DELETE FROM events.event_counts")
    assert await counted(pool, Grouping.DAY) == billed


async def test_conversions_are_in_both_sources_also_after_their_day_was_rolled_up(
    pool: Pool, ledger: Ledger
) -> None:
    rollup = Rollup(pool, ManualClock(AFTER_MIDNIGHT))
    offer: dict[str, Any] = {"request_id": REQUEST, "slot": 0}
    await ledger.apply(
        an_impression("i", occurred_at=BEFORE_MIDNIGHT, **offer),
        a_click("c", occurred_at=BEFORE_MIDNIGHT, device_type="mobile", **offer),
    )
    await rollup.roll_up(DAY)

    of_offer: dict[str, Any] = {
        "occurred_at": BEFORE_MIDNIGHT,
        "offered_at": int(BEFORE_MIDNIGHT.timestamp()),
    }
    await ledger.apply(a_conversion("one", **of_offer), a_conversion("two", **of_offer))
    converted = Counts(impressions=1, clicks=1, conversions=2, conversion_value=Micros(19_980_000))
    assert await counted(pool, Grouping.DAY) == await counted(pool, Grouping.HOUR) == converted
    [mobile] = [
        row.counts
        for row in await read_statistics(
            pool,
            StatsQuestion(first=DAY, last=DAY, groupings=(Grouping.DEVICE,)),
            today=DAY + timedelta(days=2),
            rows_max=9,
        )
        if row.key == ("mobile",)
    ]
    assert (mobile.clicks, mobile.conversions) == (1, 2)

    assert await rollup.roll_up(DAY, only_if_stale=True) is not None
    await pool.execute("DELETE FROM events.event_counts")
    assert await counted(pool, Grouping.DAY) == converted


async def test_a_repeated_event_is_in_both_sources_once(pool: Pool, ledger: Ledger) -> None:
    event = an_impression("i", occurred_at=BEFORE_MIDNIGHT)
    await ledger.apply(event, event)
    await ledger.apply(event)
    await Rollup(pool, ManualClock(AFTER_MIDNIGHT)).roll_up(DAY)
    await ledger.apply(event)

    for grouping in Grouping:
        spend, free = (None, None) if grouping in OF_READERS else (Micros(0), 0)
        assert await counted(pool, grouping) == Counts(impressions=1, spend=spend, over_budget_clicks=free)
