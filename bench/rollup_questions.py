"""`python -m bench.rollup_questions`: the time of statistics queries over many days and banners."""

import asyncio
import time
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from adloom.runtime.postgres import Pool
from adloom.stats.model import Grouping, StatsQuestion
from adloom.stats.store import statistics
from bench.database import STATEMENT_SECONDS_MAX, DatabaseSize, run_database

TODAY: Final = date(2026, 11, 15)
NOON: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
ROUNDS: Final = 5
ROWS_MAX: Final = 100_001
PLACEMENTS_PER_BANNER: Final = 3

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
ROWS = "SELECT (SELECT count(*) FROM banner_stats), (SELECT count(*) FROM events.event_counts)"
# Any ids but the first and the last.
IDS = """
    SELECT banners.public_id AS banner, campaigns.public_id AS campaign, advertisers.public_id AS advertiser
      FROM banners JOIN campaigns USING (id) JOIN advertisers USING (id) ORDER BY id LIMIT 1 OFFSET 7
"""


def main(
    *,
    days: Annotated[int, typer.Option(min=1, help="Days that are rolled up.")] = 90,
    banners: Annotated[int, typer.Option(min=1, help="Banners, on 3 placements each.")] = 10_000,
    places: Annotated[int, typer.Option(min=1, help="Placements, campaigns and advertisers, each.")] = 1_000,
    hours: Annotated[int, typer.Option(min=1, help="Hours of live counts, until noon today.")] = 60,
) -> None:
    """Query statistics in a temporary database, and show the best of five times."""
    asyncio.run(_measure(days, hours, DatabaseSize(banners=banners, places=places)))


async def _measure(days: int, hours: int, size: DatabaseSize) -> None:
    console = Console()
    with console.status("Filling the database") as status:
        async with run_database(size) as pool:
            await _fill(pool, days, hours, size)
            rows = await pool.fetchrow(ROWS)
            assert rows is not None
            table = Table(
                title=f"{rows[0]:,} rows of {days} days, and {rows[1]:,} live counts of {hours} hours",
                title_justify="left",
                title_style="dim",
            )
            for heading in ("question", "rows", "ms"):
                table.add_column(heading, justify="left" if heading == "question" else "right")
            for name, question in (await _build_questions(pool, days)).items():
                status.update(name)
                found, seconds = await _measure_best(pool, question)
                table.add_row(name, f"{found:,}", f"{seconds * 1000:.0f}")
    console.print(table)


async def _fill(pool: Pool, days: int, hours: int, size: DatabaseSize) -> None:
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

    def asked(*groupings: Grouping, first: int = days, **only: UUID) -> StatsQuestion:
        question = StatsQuestion(first=TODAY - timedelta(days=first), last=TODAY, groupings=groupings)
        return msgspec.structs.replace(question, **only)

    return {
        "by day": asked(Grouping.DAY),
        "by banner": asked(Grouping.BANNER),
        "by campaign": asked(Grouping.CAMPAIGN),
        "by placement": asked(Grouping.PLACEMENT),
        "of one banner, by day": asked(Grouping.DAY, banner_id=ids["banner"]),
        "of one campaign, by day and banner": asked(
            Grouping.DAY, Grouping.BANNER, campaign_id=ids["campaign"]
        ),
        "of one advertiser, by day": asked(Grouping.DAY, advertiser_id=ids["advertiser"]),
        "today, by hour": asked(Grouping.HOUR, first=0),
        "today, by banner": asked(Grouping.BANNER, first=0),
        "live, by hour and country": asked(Grouping.HOUR, Grouping.COUNTRY),
        "live, of one banner, by hour": asked(Grouping.HOUR, banner_id=ids["banner"]),
        "live, of one campaign, by hour": asked(Grouping.HOUR, campaign_id=ids["campaign"]),
    }


async def _measure_best(pool: Pool, question: StatsQuestion) -> tuple[int, float]:
    best, found = float("inf"), 0
    for _ in range(ROUNDS):
        started_at = time.perf_counter()
        found = len(await statistics(pool, question, today=TODAY, rows_max=ROWS_MAX))
        best = min(best, time.perf_counter() - started_at)
    return found, best


if __name__ == "__main__":
    typer.run(main)
