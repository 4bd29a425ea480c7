"""The worker as a process: at its start it rolls up the days that it missed."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.stats.event_rows import an_event, insert_catalog, insert_events
from tests.support.forked import ForkedPopen

pytestmark = pytest.mark.process

SECONDS_MAX = 60


@contextlib.contextmanager
def a_worker(**variables: str) -> Generator[subprocess.Popen[bytes]]:
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.worker"],
        env={**os.environ, "WORKER_PORT": str(find_port()), **variables},
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()


async def test_a_worker_rolls_up_every_missed_day_and_logs_it(
    pool: Pool, database_url: str, redis_url: str
) -> None:
    await insert_catalog(pool, 1)
    now = datetime.now(UTC)
    missed = [now - timedelta(days=number) for number in (3, 2, 1)]
    await insert_events(pool, *(an_event(at=moment) for moment in [*missed, now]))
    port = find_port()

    with a_worker(
        DATABASE_URL=database_url,
        REDIS_URL=redis_url,
        ADLOOM_METRICS_PORT=str(port),
        ADLOOM_LOG_FORMAT="json",
        BANNER_STATS_ROLLUP_CRON="* * * * *",  # A rollup every minute.
    ) as process:
        async with asyncio.timeout(SECONDS_MAX):
            while await pool.fetchval("SELECT count(*) FROM rollup_days") < len(missed):  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.05)
        async with httpx.AsyncClient(timeout=30) as client:
            metrics = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        process.terminate()
        _, stderr = await asyncio.to_thread(process.communicate, timeout=SECONDS_MAX)

    days = [row["stat_date"] for row in await pool.fetch("SELECT stat_date FROM banner_stats ORDER BY 1")]
    assert days[: len(missed)] == [moment.date() for moment in missed]
    assert stderr.count(b'"event": "rollup_finished"') >= len(missed)
    assert "adloom_rollups_total" in metrics
    assert "adloom_rollups_stale" in metrics
