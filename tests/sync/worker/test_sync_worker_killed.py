"""A real worker is killed during a sync, and the next one leaves the same tables as an undisturbed one."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from adloom.runtime.jobs.queue import JobState
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import Origin, build_jobs
from adloom.sync.queue import StatsQueue, open_stats_queue
from adloom.sync.words import Level
from tests.support.forked import ForkedPopen
from tests.support.slow_writes import slow_writes
from tests.sync.shop import Seller, a_processor, a_seller, tables

pytestmark = pytest.mark.process

DAYS = 20
LAST = datetime(2026, 2, 19, tzinfo=UTC).date()
FIRST = LAST - timedelta(days=DAYS - 1)


@contextlib.contextmanager
def a_worker(database_url: str, redis_url: str, **variables: str) -> Generator[subprocess.Popen[bytes]]:
    given = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "WORKER_PORT": str(find_port()),
        "ADLOOM_LOG_FORMAT": "json",
    }
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.worker"],
        env={**os.environ, **given, **variables},
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def raw_rows(pool: Pool) -> int:
    return await pool.fetchval("SELECT count(*) FROM sync.ad_stats_raw")


async def all_done(queue: StatsQueue, seller: Seller) -> bool:
    done = await queue.list_jobs(JobState.COMPLETED, seller_id=seller.id)
    return len(done) == len(Level)


async def test_the_next_worker_completes_a_sync_that_was_killed(
    pool: Pool, database_url: str, redis_url: str
) -> None:
    # The schedule skips such sellers, so that nothing else is synced.
    archived = {"status": "ARCHIVED"}
    seller = await a_seller(pool, campaigns=20, adsets=3, ads=5, pages=4, campaign=archived)
    jobs = build_jobs(seller.id, FIRST, LAST, Origin.MANUAL)
    async with open_stats_queue(redis_url) as queue, asyncio.timeout(90):
        await queue.put(jobs)
        async with slow_writes(pool, "sync.ad_stats_raw", seconds=0.002):
            with a_worker(database_url, redis_url) as first:
                while not await raw_rows(pool):  # noqa: ASYNC110 - another process writes them
                    await asyncio.sleep(0.005)
                first.kill()
                await asyncio.to_thread(first.wait)
        rows_before = await raw_rows(pool)
        assert not await all_done(queue, seller), "it was killed during the sync"

        with a_worker(database_url, redis_url):
            while not await all_done(queue, seller):  # noqa: ASYNC110 - another process does them
                await asyncio.sleep(0.1)

    mended = await tables(pool)
    await pool.execute("DELETE FROM sync.ad_stats_raw")
    await pool.execute("DELETE FROM sync.ad_stats_daily")
    await pool.execute("DELETE FROM sync.sellpage_stats_daily")
    processor = a_processor(pool)
    for job in jobs:
        await processor.sync(job)
    assert mended == await tables(pool)
    assert 0 < rows_before < len(mended["raw"]) == DAYS * (20 + 60 + 300)


async def test_a_worker_syncs_on_schedule_and_counts_it_in_its_metrics(
    pool: Pool, database_url: str, redis_url: str
) -> None:
    seller = await a_seller(pool)
    port = find_port()
    metrics_port = str(find_port())
    variables = {
        "ADLOOM_SYNC_CRON": "0 0 1 1 *",  # The last one is made up for at the start, and there is no other.
        "ADLOOM_METRICS_PORT": metrics_port,
        "WORKER_PORT": str(port),
    }

    with a_worker(database_url, redis_url, **variables) as process:
        async with asyncio.timeout(60), httpx.AsyncClient(timeout=30) as client:
            while await pool.fetchval("SELECT count(*) FROM sync.freshness") < 3:  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.05)
            figures = ""
            while 'adloom_sync_fetches_total{outcome="done",provider="mock"} 3.0' not in figures:
                figures = (await client.get(f"http://127.0.0.1:{metrics_port}/metrics")).text
            health = (await client.get(f"http://127.0.0.1:{port}/health")).json()
        process.terminate()
        _, output = await asyncio.to_thread(process.communicate, timeout=60)

    assert (health["status"], health["queue"]) == ("ok", "stats-sync")
    assert health["uptime"] > 0
    assert b'"event": "stats-sync-complete"' in output
    assert 'adloom_sync_rows_total{provider="mock"} 32.0' in figures
    assert 'adloom_sync_fetch_seconds_count{provider="mock"} 3.0' in figures
    assert 'adloom_sync_sellers{state="eligible"}' in figures
    assert 'adloom_sync_age_seconds{seller="oldest"}' in figures
    assert f'adloom_sync_seller_age_seconds{{seller="{seller.id}"}}' in figures
