"""`python -m bench.rollup`: the cost of rolling up a day, as a ratio to counting its rows."""

import asyncio
from datetime import date
from typing import Annotated, Final

import typer
from rich.console import Console

from adloom.core.clock import SystemClock
from adloom.runtime.postgres import Pool
from adloom.stats.rollup import Rollup
from bench.database import (
    STATEMENT_SECONDS_MAX,
    DatabaseSize,
    fill_day,
    measure_seconds,
    run_database,
    show_ratios,
)

DAY: Final = date(2026, 11, 14)
EVENTS_MAX: Final = 1_000_000_000

COUNT = """
    SELECT (SELECT count(*) FROM events.banner_impressions) + (SELECT count(*) FROM events.banner_clicks)
"""


def main(
    *,
    events: Annotated[int, typer.Option(min=1, max=EVENTS_MAX, help="Events of the day.")] = 10_000_000,
    banners: Annotated[int, typer.Option(min=1, help="Banners that they are of.")] = 10_000,
    places: Annotated[int, typer.Option(min=1, help="Placements, campaigns and advertisers, each.")] = 1_000,
) -> None:
    """Roll up a day in a temporary database, and compare with counting its rows."""
    asyncio.run(_measure(events, DatabaseSize(banners=banners, places=places)))


async def _measure(events: int, size: DatabaseSize) -> None:
    console = Console()
    with console.status("Starting PostgreSQL") as status:
        async with run_database(size) as pool:
            await fill_day(
                pool, DAY, events, size, lambda share: status.update(f"Making {events:,} events: {share:.0%}")
            )
            status.update("Measuring")
            figures = await _measure_figures(pool)
            megabytes = await pool.fetchval(
                "SELECT sum(pg_relation_size(oid))::bigint / 1000000 FROM pg_class WHERE relname ~ $1",
                r"^banner_(impressions|clicks)_\d+$",
            )
            rows = await pool.fetchval("SELECT count(*) FROM banner_stats")
    show_ratios(
        console, f"{events:,} events ({megabytes:,} MB) into {rows:,} rows", figures, heading="to count(*)"
    )


async def _measure_figures(pool: Pool) -> dict[str, float]:
    """Measure each step, and counting both before and after, since other work may run on the machine."""
    rollup = Rollup(pool, SystemClock())

    async def count() -> None:
        await pool.execute(COUNT, timeout=STATEMENT_SECONDS_MAX)

    async def roll_up() -> None:
        assert await rollup.roll_up(DAY) is not None

    counting = await measure_seconds(count)
    first = await measure_seconds(roll_up)
    again = await measure_seconds(roll_up)
    return {
        "count(*) of the rows": min(counting, await measure_seconds(count)),
        "roll up, the first time": first,
        "roll up again": again,
    }


if __name__ == "__main__":
    typer.run(main)
