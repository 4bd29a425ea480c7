"""`adloom bench rollup` and `questions`: the cost of rolling up a day, and the time of statistics queries."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer

from adloom.core.clock import SystemClock
from adloom.runtime.postgres import Pool
from adloom.stats.model import Grouping, StatsQuestion
from adloom.stats.rollup import Rollup
from adloom.stats.store import read_statistics
from bench.figures import BenchTable, show, tabulate_ratios
from bench.fill import STATEMENT_SECONDS_MAX, CatalogSize, fill_day
from bench.processes import ShowStatus
from bench.servers import run_servers

DAY: Final = date(2026, 11, 14)
TODAY: Final = date(2026, 11, 15)
NOON: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
EVENTS_MAX: Final = 1_000_000_000
ROUNDS: Final = 5
ROWS_MAX: Final = 100_001
PLACEMENTS_PER_BANNER: Final = 3

COUNT = """
    SELECT (SELECT count(*) FROM events.banner_impressions) + (SELECT count(*) FROM events.banner_clicks)
"""
MEGABYTES = """
    SELECT sum(pg_relation_size(oid))::bigint / 1000000 FROM pg_class WHERE relname ~ '^banner_(impressions|clicks)_\\d+$'
"""
FILL_STATISTICS = """
    INSERT INTO banner_stats (
        banner_id, placement_id, campaign_id, stat_date, impressions, clicks, invalid_impressions, invalid_clicks
    )
    SELECT banner, 1 + (banner * 7 + place) % $2::int, 1 + banner % $2::int, $1::date - day,
           100 + (banner * day) % 900, banner % 20, 2, 1
      FROM generate_series(1, $3::int) AS day, generate_series(1, $4::int) AS banner,
           generate_series(0, $5::int - 1) AS place
"""
FILL_DAYS = """
    WITH days AS (
        SELECT stat_date AS day, sum(impressions + clicks) AS events FROM banner_stats GROUP BY 1
    ), noted AS (
        INSERT INTO events.event_days (day, events) SELECT day, events FROM days
    )
    INSERT INTO rollup_days (day, events, rolled_at) SELECT day, events, now() FROM days
"""
# The last hours: counts of every banner by placement, country and device.
FILL_COUNTS = """
    INSERT INTO events.event_counts (
        hour, banner_id, placement_id, campaign_id, country_code, device_type, impressions, clicks, invalid_clicks
    )
    SELECT $1::timestamptz - number * interval '1 hour', banner, 1 + banner * 7 % $2::int, 1 + banner % $2::int,
           country, device, 10, 1, 1
      FROM generate_series(0, $3::int - 1) AS number, generate_series(1, $4::int) AS banner,
           unnest(ARRAY['DE', 'FR']) AS country, unnest(ARRAY['mobile', 'desktop']) AS device
"""
# Any ids but the first and the last.
IDS = """
    SELECT banners.public_id AS banner, campaigns.public_id AS campaign, advertisers.public_id AS advertiser
      FROM banners JOIN campaigns USING (id) JOIN advertisers USING (id) ORDER BY id LIMIT 1 OFFSET 7
"""

Banners = Annotated[int, typer.Option(min=1, help="Banners.")]
Places = Annotated[int, typer.Option(min=1, help="Placements, campaigns and advertisers, each.")]


def roll_up_a_day(
    *,
    events: Annotated[int, typer.Option(min=1, max=EVENTS_MAX, help="Events of the day.")] = 10_000_000,
    banners: Banners = 10_000,
    places: Places = 1_000,
) -> None:
    """Roll up a day in a temporary database, and compare with counting its rows."""

    async def work(pool: Pool, size: CatalogSize, say: ShowStatus) -> BenchTable:
        await fill_day(pool, DAY, events, size, lambda share: say(f"Making {events:,} events: {share:.0%}"))
        say("Measuring")
        seconds = await _measure_rollup(pool)
        megabytes = await pool.fetchval(MEGABYTES)
        rows = await pool.fetchval("SELECT count(*) FROM banner_stats")
        title = f"{events:,} events ({megabytes:,} MB) into {rows:,} rows"
        return tabulate_ratios(title, seconds, heading="to count(*)")

    _show(work, banners=banners, places=places)


def ask_questions(
    *,
    days: Annotated[int, typer.Option(min=1, help="Days that are rolled up.")] = 90,
    hours: Annotated[int, typer.Option(min=1, help="Hours of live counts, until noon today.")] = 60,
    banners: Banners = 10_000,
    places: Places = 1_000,
) -> None:
    """Query statistics in a temporary database, and show the best of five times."""

    async def work(pool: Pool, size: CatalogSize, say: ShowStatus) -> BenchTable:
        say("Filling the database")
        await _fill_statistics(pool, days, hours, size)
        rows: list[list[str]] = []
        for name, question in (await _build_questions(pool, days)).items():
            say(name)
            found, seconds = await _measure_best(pool, question)
            rows.append([name, f"{found:,}", f"{seconds * 1000:.0f}"])
        title = f"{days} days of {banners:,} banners, and live counts of {hours} hours"
        return BenchTable(title=title, headings=["question", "rows", "ms"], rows=rows)

    _show(work, banners=banners, places=places)


def _show(
    work: Callable[[Pool, CatalogSize, ShowStatus], Awaitable[BenchTable]], *, banners: int, places: int
) -> None:
    size = CatalogSize(banners=banners, places=places)

    async def measure(say: ShowStatus) -> BenchTable:
        async with run_servers(size) as servers:
            return await work(servers.pool, size, say)

    show(lambda say: asyncio.run(measure(say)))


async def _measure_rollup(pool: Pool) -> dict[str, float]:
    """Measure each step, and counting both before and after, since other work may run on the machine."""
    rollup = Rollup(pool, SystemClock())

    async def count() -> None:
        await pool.execute(COUNT, timeout=STATEMENT_SECONDS_MAX)

    async def roll_up() -> None:
        assert await rollup.roll_up(DAY) is not None

    counting, first, again, counting_later = [
        await measure_seconds(step) for step in (count, roll_up, roll_up, count)
    ]
    return {
        "count(*) of the rows": min(counting, counting_later),
        "roll up, the first time": first,
        "roll up again": again,
    }


async def measure_seconds(work: Callable[[], Awaitable[None]]) -> float:
    started_at = time.perf_counter()
    await work()
    return time.perf_counter() - started_at


async def _fill_statistics(pool: Pool, days: int, hours: int, size: CatalogSize) -> None:
    for statement, *values in (
        (FILL_STATISTICS, TODAY, size.places, days, size.banners, PLACEMENTS_PER_BANNER),
        (FILL_DAYS,),
        (FILL_COUNTS, NOON, size.places, hours, size.banners),
        ("VACUUM ANALYZE",),
    ):
        await pool.execute(statement, *values, timeout=STATEMENT_SECONDS_MAX)


async def _build_questions(pool: Pool, days: int) -> dict[str, StatsQuestion]:
    ids = await pool.fetchrow(IDS)
    assert ids is not None

    def make_question(*groupings: Grouping, first: int = days, **only: UUID) -> StatsQuestion:
        question = StatsQuestion(first=TODAY - timedelta(days=first), last=TODAY, groupings=groupings)
        return msgspec.structs.replace(question, **only)

    banner, campaign = {"banner_id": ids["banner"]}, {"campaign_id": ids["campaign"]}
    return {
        "by day": make_question(Grouping.DAY),
        "by banner": make_question(Grouping.BANNER),
        "by campaign": make_question(Grouping.CAMPAIGN),
        "by placement": make_question(Grouping.PLACEMENT),
        "of one banner, by day": make_question(Grouping.DAY, **banner),
        "of one campaign, by day and banner": make_question(Grouping.DAY, Grouping.BANNER, **campaign),
        "of one advertiser, by day": make_question(Grouping.DAY, advertiser_id=ids["advertiser"]),
        "today, by hour": make_question(Grouping.HOUR, first=0),
        "today, by banner": make_question(Grouping.BANNER, first=0),
        "live, by hour and country": make_question(Grouping.HOUR, Grouping.COUNTRY),
        "live, of one banner, by hour": make_question(Grouping.HOUR, **banner),
        "live, of one campaign, by hour": make_question(Grouping.HOUR, **campaign),
    }


async def _measure_best(pool: Pool, question: StatsQuestion) -> tuple[int, float]:
    best, found = float("inf"), 0
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        found = len(await read_statistics(pool, question, today=TODAY, rows_max=ROWS_MAX))
        best = min(best, time.perf_counter() - started_at)
    return found, best
