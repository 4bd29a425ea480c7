"""The worker as a process: it follows the ledger, says that it is well, and stops when it is told."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import httpx
import pytest

from adloom.ledger.event import encoded
from adloom.ledger.stream import ValkeyLedger
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.ledger.builders import a_click, an_impression
from tests.ledger.catalog import insert_catalog

pytestmark = pytest.mark.process


class Worker:
    def __init__(self, database_url: str, redis_url: str) -> None:
        self.port = free_port()
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "WORKER_PORT": str(self.port),
        }

    @contextlib.contextmanager
    def running(self) -> Generator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "adloom.entrypoints.worker"], env=self._environment, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    async def health(self) -> httpx.Response:
        async with httpx.AsyncClient() as client, asyncio.timeout(20):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    return await client.get(f"http://127.0.0.1:{self.port}/health")
                await asyncio.sleep(0.05)


async def until_counted(pool: Pool, impressions: int) -> None:
    async with asyncio.timeout(20):
        while await pool.fetchval("SELECT sum(impressions) FROM event_counts") != impressions:  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.02)


@pytest.fixture
def worker(database_url: str, redis_url: str) -> Worker:
    return Worker(database_url, redis_url)


async def test_a_worker_is_well_counts_and_stops_within_three_seconds(
    worker: Worker, pool: Pool, valkey: Valkey
) -> None:
    await insert_catalog(pool)
    with worker.running() as process:
        answer = await worker.health()
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok", "queue": "stats-sync", "uptime": answer.json()["uptime"]}
        assert answer.json()["uptime"] >= 0

        await ValkeyLedger(valkey).append([encoded(an_impression()), encoded(a_click())])
        await until_counted(pool, 1)

        before = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
        assert time.monotonic() - before < 3


async def test_a_worker_that_was_killed_goes_on_where_it_was(
    worker: Worker, pool: Pool, valkey: Valkey
) -> None:
    await insert_catalog(pool)
    ledger = ValkeyLedger(valkey)
    for number in range(20):
        await ledger.append([encoded(an_impression(f"{number}-{one}")) for one in range(1000)])

    for _ in range(3):
        with worker.running() as process:
            await worker.health()
            await asyncio.sleep(0.1)
            process.kill()
    with worker.running():
        await until_counted(pool, 20_000)

    assert await pool.fetchval("SELECT count(*) FROM banner_impressions") == 20_000
