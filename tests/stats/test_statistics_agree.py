"""For any events both sources agree, and every grouping has the same total."""

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from adloom.stats.model import (
    OF_READERS,
    ONLY_LIVE,
    Counts,
    Grouping,
    Key,
    StatsQuestion,
    StatsRow,
    sum_rows,
)
from adloom.stats.rollup import Rollup
from adloom.stats.store import Sources, SourceSpan, find_sources, read_statistics
from tests.stats.event_rows import EventRow, insert_catalog, insert_events

FIRST = date(2026, 11, 10)
LAST = date(2026, 11, 13)
TODAY = date(2026, 11, 13)
MIDNIGHT = datetime(2026, 11, 10, tzinfo=UTC)
ONE_DAY = timedelta(days=1)
WHOLE = SourceSpan(FIRST, LAST)


class Spend(NamedTuple):
    """The charges of an hour."""

    banner: int
    placement: int
    campaign: int
    at: datetime
    micros: int
    free: int
    country: None = None
    device: None = None


moments = st.one_of(
    st.integers(0, 4 * 24 * 3600 - 1).map(lambda seconds: MIDNIGHT + timedelta(seconds=seconds)),
    st.sampled_from([MIDNIGHT + number * ONE_DAY for number in range(4)]),
    st.sampled_from([MIDNIGHT + number * ONE_DAY - timedelta(microseconds=1) for number in range(1, 5)]),
)
events = st.builds(
    EventRow,
    kind=st.sampled_from(["impressions", "clicks"]),
    banner=st.integers(1, 3),
    placement=st.integers(1, 3),
    campaign=st.one_of(st.none(), st.integers(1, 3)),
    country=st.sampled_from([None, "DE", "FR", "T1"]),
    device=st.sampled_from([None, "mobile", "desktop"]),
    at=moments,
    is_valid=st.booleans(),
    mark=st.sampled_from([None, None, "unbound", "not_assigned"]),
)
spends = st.builds(
    Spend,
    banner=st.integers(1, 3),
    placement=st.integers(1, 3),
    campaign=st.integers(1, 3),
    at=moments.map(lambda moment: moment.replace(minute=0, second=0, microsecond=0)),
    micros=st.integers(1, 20_000),
    free=st.integers(0, 2),
)
# Owners, sites and kinds have a test of their own.
OF_OWNERS = frozenset({Grouping.ADVERTISER, Grouping.PUBLISHER, Grouping.SITE, Grouping.DELIVERY})
groupings = st.lists(
    st.sampled_from([one for one in Grouping if one not in OF_OWNERS]), min_size=1, max_size=4, unique=True
).map(tuple)
# Each example empties the tables itself. Shrinking a failure would take minutes of database time.
against_the_database = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
EMPTY = (
    "TRUNCATE events.banner_impressions, events.banner_clicks, events.event_counts, events.event_days,"
    " rollup_days, banner_stats, spend_hours"
)


async def ask(pool: Pool, chosen: tuple[Grouping, ...], **fields: Any) -> list[StatsRow]:
    question = StatsQuestion(first=FIRST, last=LAST, groupings=chosen)
    asked = msgspec.structs.replace(question, **fields)
    return await read_statistics(pool, asked, today=TODAY, rows_max=100_000)


@against_the_database
@given(
    inserted=st.lists(events, max_size=30),
    late=st.lists(events, max_size=5),
    spent=st.lists(spends, max_size=10),
    chosen=groupings,
    rolled=st.sets(st.integers(0, 3)),
)
async def test_every_grouping_has_the_same_total_in_both_sources(  # noqa: PLR0913, PLR0917 - all that happens
    pool: Pool,
    inserted: list[EventRow],
    late: list[EventRow],
    spent: list[Spend],
    chosen: tuple[Grouping, ...],
    rolled: set[int],
) -> None:
    await pool.execute(EMPTY)
    if not await pool.fetchval("SELECT EXISTS (SELECT FROM banners)"):
        await insert_catalog(pool, 3)
    names = await public_ids(pool)
    await insert_events(pool, *inserted) if inserted else None
    await insert_spends(pool, spent)

    live = await ask(pool, chosen)
    for number in rolled:
        await Rollup(pool, ManualClock(MIDNIGHT), batch_blocks=1).roll_up(FIRST + number * ONE_DAY)
    mixed = await ask(pool, chosen)
    await insert_events(pool, *late) if late else None
    stale = await ask(pool, chosen)

    assert live == mixed
    assert as_mapping(live) == expected(inserted, chosen, names, spent)
    assert as_mapping(stale) == expected([*inserted, *late], chosen, names, spent)
    assert sum_rows(await ask(pool, (Grouping.DAY,))) == counts_of([*inserted, *late], spent)
    assert without_spend(sum_rows(stale)) == without_spend(counts_of([*inserted, *late]))


@against_the_database
@given(
    inserted=st.lists(events, min_size=1, max_size=30),
    chosen=groupings,
    banner=st.one_of(st.none(), st.integers(1, 3)),
    placement=st.one_of(st.none(), st.integers(1, 3)),
    campaign=st.one_of(st.none(), st.integers(1, 3)),
    span=st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted),
)
async def test_a_filter_returns_the_same_from_both_sources(  # noqa: PLR0913, PLR0917 - one for each filter
    pool: Pool,
    inserted: list[EventRow],
    chosen: tuple[Grouping, ...],
    banner: int | None,
    placement: int | None,
    campaign: int | None,
    span: list[int],
) -> None:
    await pool.execute(EMPTY)
    if not await pool.fetchval("SELECT EXISTS (SELECT FROM banners)"):
        await insert_catalog(pool, 3)
    names = await public_ids(pool)
    await insert_events(pool, *inserted)
    first, last = (FIRST + number * ONE_DAY for number in span)
    fields = {
        "banner_id": banner and names["banner", banner],
        "placement_id": placement and names["placement", placement],
        "campaign_id": campaign and names["campaign", campaign],
        "first": first,
        "last": last,
    }

    live = await ask(pool, chosen, **fields)
    for number in range(4):
        await Rollup(pool, ManualClock(MIDNIGHT)).roll_up(FIRST + number * ONE_DAY)

    assert await ask(pool, chosen, **fields) == live
    wanted = [
        event
        for event in inserted
        if banner in {None, event.banner}
        and placement in {None, event.placement}
        and campaign in {None, event.campaign}
        and first <= event.at.date() <= last
    ]
    assert as_mapping(live) == expected(wanted, chosen, names)


async def test_rolled_up_days_are_not_read_from_the_counts(pool: Pool) -> None:
    await insert_catalog(pool, 1)
    at = MIDNIGHT + timedelta(hours=5)
    await insert_events(pool, EventRow("impressions", 1, 1, None, "DE", "mobile", at, is_valid=True))
    await Rollup(pool, ManualClock(MIDNIGHT)).roll_up(FIRST)
    await pool.execute("DELETE FROM events.event_counts")

    for grouping in Grouping:
        found = sum_rows(await ask(pool, (grouping,))).impressions
        assert found == (0 if grouping in ONLY_LIVE else 1)


@given(rolled=st.sets(st.integers(0, 9)), first=st.integers(0, 9), length=st.integers(0, 9))
def test_every_day_of_a_range_is_read_from_one_source(rolled: set[int], first: int, length: int) -> None:
    whole = SourceSpan(FIRST + first * ONE_DAY, FIRST + (first + length) * ONE_DAY)
    rolled_up = {FIRST + number * ONE_DAY for number in rolled} & set(days_of(whole))

    parted = find_sources(whole, sorted(rolled_up))

    assert [day for span in parted.rolled_up for day in days_of(span)] == sorted(rolled_up)
    assert [day for span in parted.live for day in days_of(span)] == sorted(set(days_of(whole)) - rolled_up)
    for spans in parted:
        assert all(one.last + ONE_DAY < other.first for one, other in itertools.pairwise(spans))


def test_a_range_without_rolled_up_days_is_one_span() -> None:
    assert find_sources(WHOLE, []) == Sources(live=(WHOLE,))
    assert find_sources(WHOLE, days_of(WHOLE)) == Sources(rolled_up=(WHOLE,))


def days_of(span: SourceSpan) -> list[date]:
    return [span.first + number * ONE_DAY for number in range((span.last - span.first).days + 1)]


async def public_ids(pool: Pool) -> dict[tuple[str, int | None], UUID | None]:
    names: dict[tuple[str, int | None], UUID | None] = {("campaign", None): None}
    for noun in ("banner", "placement", "campaign"):
        for row in await pool.fetch(f"SELECT id, public_id FROM {noun}s"):  # noqa: S608 - our own names
            names[noun, row["id"]] = row["public_id"]
    return names


async def insert_spends(pool: Pool, spent: list[Spend]) -> None:
    await pool.executemany(
        "INSERT INTO spend_hours AS it VALUES ($1, $2, $3, $4, 1, $5, $6) ON CONFLICT "
        "(hour, banner_id, placement_id, campaign_id) DO UPDATE"
        " SET spent_micros = it.spent_micros + $5, over_budget_clicks = it.over_budget_clicks + $6",
        [(one.at, one.banner, one.placement, one.campaign, one.micros, one.free) for one in spent],
    )


def without_spend(counts: Counts) -> Counts:
    return msgspec.structs.replace(counts, over_budget_clicks=None, spend=None)


def key_of(
    event: EventRow | Spend, chosen: tuple[Grouping, ...], names: dict[tuple[str, int | None], UUID | None]
) -> tuple[Key, ...]:
    parts: dict[Grouping, Key] = {
        Grouping.DAY: event.at.date(),
        Grouping.WEEK: event.at.date() - timedelta(days=event.at.weekday()),
        Grouping.MONTH: event.at.date().replace(day=1),
        Grouping.HOUR: event.at.replace(minute=0, second=0, microsecond=0),
        Grouping.BANNER: names["banner", event.banner],
        Grouping.PLACEMENT: names["placement", event.placement],
        Grouping.CAMPAIGN: names["campaign", event.campaign],
        Grouping.COUNTRY: event.country,
        Grouping.DEVICE: event.device,
    }
    return tuple(parts[grouping] for grouping in chosen)


def expected(
    inserted: list[EventRow],
    chosen: tuple[Grouping, ...],
    names: dict[tuple[str, int | None], UUID | None],
    spent: Sequence[Spend] = (),
) -> dict[tuple[Key, ...], Counts]:
    """Count by hand; spend per country or device is unknown."""
    is_per_visitor = not OF_READERS.isdisjoint(chosen)
    by_key: dict[tuple[Key, ...], tuple[list[EventRow], list[Spend]]] = {}
    for event in (one for one in inserted if one.mark != "not_assigned"):
        by_key.setdefault(key_of(event, chosen, names), ([], []))[0].append(event)
    for spend in () if is_per_visitor else spent:
        by_key.setdefault(key_of(spend, chosen, names), ([], []))[1].append(spend)
    counted = {key: counts_of(*of_key) for key, of_key in by_key.items()}
    return {key: without_spend(counts) if is_per_visitor else counts for key, counts in counted.items()}


def counts_of(inserted: list[EventRow], spent: Sequence[Spend] = ()) -> Counts:
    counted = Counter((event.kind, event.is_valid) for event in inserted if event.mark is None)
    unbound = Counter(event.kind for event in inserted if event.mark == "unbound")
    return Counts(
        impressions=counted["impressions", True] + counted["impressions", False],
        clicks=counted["clicks", True] + counted["clicks", False],
        invalid_impressions=counted["impressions", False],
        invalid_clicks=counted["clicks", False],
        unbound_impressions=unbound["impressions"],
        unbound_clicks=unbound["clicks"],
        over_budget_clicks=sum(one.free for one in spent),
        spend=Micros(sum(one.micros for one in spent)),
    )


def as_mapping(rows: list[StatsRow]) -> dict[tuple[Key, ...], Counts]:
    assert len({row.key for row in rows}) == len(rows), "a key comes once"
    return {row.key: row.counts for row in rows}


# Clocks change at midnight in Santiago, Cairo and Nuuk, where a day's last hour comes twice or not at all. PostgreSQL
# takes CET for a fixed hour, and may know other rules of a zone than Python.
@pytest.mark.parametrize(
    "zone", ["CET", "America/Santiago", "Africa/Cairo", "America/Nuuk", "America/Vancouver"]
)
@pytest.mark.parametrize(
    "first", [date(2026, 3, 27), date(2026, 4, 3), date(2026, 7, 1), date(2026, 10, 28)], ids=str
)
async def test_every_hour_is_in_the_day_that_the_zone_has_then(pool: Pool, zone: str, first: date) -> None:
    await insert_catalog(pool, 1)
    begins = datetime.combine(first, time(), UTC) - ONE_DAY
    await pool.execute(HOURS, begins, begins + 6 * ONE_DAY)
    days = [first + number * ONE_DAY for number in range(4)]
    wanted = Counter(
        day
        for number in range(6 * 24)
        if (day := (begins + timedelta(hours=number)).astimezone(ZoneInfo(zone)).date()) in days
    )

    async def count(first: date, last: date) -> Counter[Key]:
        rows = await ask(pool, (Grouping.DAY,), first=first, last=last, zone=ZoneInfo(zone))
        assert [row.counts.spend for row in rows] == [row.counts.impressions for row in rows]
        return Counter({row.key[0]: row.counts.impressions for row in rows})

    assert await count(days[0], days[-1]) == wanted
    for day in days:
        assert await count(day, day) == {day: wanted[day]}


HOURS = """
    WITH counted AS (
        INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions)
        SELECT hour, 1, 1, 1, 1 FROM generate_series($1::timestamptz, $2, interval '1 hour') AS hour
    )
    INSERT INTO spend_hours (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
    SELECT hour, 1, 1, 1, 1, 1 FROM generate_series($1::timestamptz, $2, interval '1 hour') AS hour
"""
