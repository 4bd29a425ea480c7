"""`adloom bench sync`: the cost of syncing many sellers, as a ratio to copying the rows.

As in the worker: the scheduler enqueues a job per seller and level, five run concurrently, and the mock provider makes up
the figures. The database and Valkey are temporary.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import structlog
import typer

from adloom.core.clock import SystemClock
from adloom.runtime.jobs.worker import JobAttempt, JobWorker
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import CONCURRENCY, QUEUE, SYNC_STATS
from adloom.sync.processor import SyncProcessor, choose_backoff
from adloom.sync.providers.mock import MockProvider
from adloom.sync.queue import open_stats_queue
from adloom.sync.scheduler import SCHEDULE_STATS, SyncScheduler
from adloom.sync.words import Level, Platform
from bench.figures import BenchTable, judge, show
from bench.processes import ShowStatus
from bench.servers import run_servers

POLL_SECONDS: Final = 0.01
LIMIT_SECONDS: Final = 30.0

# Of every 100 entities 4 are campaigns, 16 ad sets and 80 ads.
HIERARCHY: Final = (
    "INSERT INTO advertisers (public_id, name) SELECT gen_random_uuid(), 'S' FROM generate_series(1, $1::int)",
    """
    INSERT INTO sync.ad_accounts (public_id, advertiser_id, name)
    SELECT gen_random_uuid(), id, 'A' FROM advertisers WHERE name = 'S'
    """,
    """
    INSERT INTO sync.sellpages (public_id, advertiser_id, name)
    SELECT gen_random_uuid(), id, 'P' FROM advertisers WHERE name = 'S'
    """,
    """
    INSERT INTO sync.campaigns (public_id, advertiser_id, ad_account_id, sellpage_id, name, budget)
    SELECT gen_random_uuid(), advertiser_id, account.id, page.id, 'C', 100 + n
      FROM sync.ad_accounts AS account JOIN sync.sellpages AS page USING (advertiser_id)
     CROSS JOIN generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO sync.adsets (public_id, advertiser_id, campaign_id, name)
    SELECT gen_random_uuid(), advertiser_id, id, 'S' FROM sync.campaigns CROSS JOIN generate_series(1, 4)
    """,
    """
    INSERT INTO sync.ads (public_id, advertiser_id, adset_id, name)
    SELECT gen_random_uuid(), advertiser_id, id, 'A' FROM sync.adsets CROSS JOIN generate_series(1, 5)
    """,
)
COPY_ROWS: Final = "CREATE TEMPORARY TABLE copied ON COMMIT DROP AS TABLE sync.ad_stats_raw"
TICK: Final = JobAttempt(name=SCHEDULE_STATS, id="bench", data={}, attempt=1)


def main(
    *,
    sellers: Annotated[int, typer.Option(min=1, help="Sellers.")] = 100,
    entities: Annotated[
        int, typer.Option(min=25, help="Campaigns, ad sets and ads of all of them.")
    ] = 10_000,
    lookback: Annotated[int, typer.Option(min=0, help="Days before today.")] = 3,
) -> None:
    """Sync all sellers twice on temporary servers, and compare with copying the rows."""
    # One log line per job is for operators.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    show(lambda say: asyncio.run(_measure(sellers, entities, lookback, say)))


async def _measure(sellers: int, entities: int, lookback: int, say: ShowStatus) -> BenchTable:
    async with run_servers() as servers:
        pool = servers.pool
        say(f"creating {entities:,} entities")
        await _fill(pool, sellers, campaigns=max(1, entities // sellers // 25))
        seconds = await _measure_seconds(pool, servers.redis_url, lookback, say)
        rows = await pool.fetchval("SELECT count(*) FROM sync.ad_stats_raw")
        found = await pool.fetchval("SELECT count(DISTINCT entity_id) FROM sync.ad_stats_daily")
    title = f"{sellers:,} sellers, {found:,} entities, {rows:,} raw rows"
    goal = judge(
        f"within {LIMIT_SECONDS:.0f} s", max(seconds.values()), at_most=LIMIT_SECONDS, form="{:.1f} s"
    )
    copying = next(iter(seconds.values()))
    rows = [[name, f"{each:.2f}", f"{each / copying:.1f}"] for name, each in seconds.items()]
    return BenchTable(title=title, headings=["", "s", "to copying"], rows=rows, goals=[goal])


async def _measure_seconds(pool: Pool, redis_url: str, lookback: int, say: ShowStatus) -> dict[str, float]:
    clock, stop = SystemClock(), asyncio.Event()
    processor = SyncProcessor(pool, {Platform.MOCK: MockProvider()}, clock=clock)
    worker = JobWorker(
        QUEUE, redis_url, {SYNC_STATS: processor.handle}, concurrency=CONCURRENCY, backoff=choose_backoff
    )
    async with open_stats_queue(redis_url) as queue, asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        scheduler = SyncScheduler(pool, queue, clock, lookback_days=lookback)
        say("syncing")
        first = await _time(lambda: _sync(scheduler, worker))
        say("syncing again")
        again = await _time(lambda: _sync(scheduler, worker))
        stop.set()
    return {
        "copy the raw rows": await _time(lambda: _copy(pool)),
        "sync": first,
        "sync again": again,
    }


async def _time(work: Callable[[], Awaitable[None]]) -> float:
    started_at = time.perf_counter()
    await work()
    return time.perf_counter() - started_at


async def _sync(scheduler: SyncScheduler, worker: JobWorker) -> None:
    """Enqueue the jobs of all sellers, and wait until they are done."""
    before, put = worker.done, scheduler.put
    await scheduler.handle(TICK)
    while worker.done < before + scheduler.put - put:
        assert not worker.dead, "a job has failed"
        await asyncio.sleep(POLL_SECONDS)


async def _copy(pool: Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(COPY_ROWS)


async def _fill(pool: Pool, sellers: int, *, campaigns: int) -> None:
    numbers = {"sync.campaigns (": campaigns, "advertisers (public_id": sellers}
    for statement in HIERARCHY:
        values = [count for name, count in numbers.items() if f"INTO {name}" in statement]
        await pool.execute(statement, *values)
    for level in Level:
        await pool.execute(f"ANALYZE sync.{level.value.lower()}s")
