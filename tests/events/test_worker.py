"""The worker as a process: it follows the log, reports its health, and stops on a signal."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator

import httpx
import pytest

from adloom.events.log.event import encode_event
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import a_click, an_impression
from tests.events.catalog import insert_catalog
from tests.support.forked import ForkedPopen

pytestmark = pytest.mark.process


class Worker:
    def __init__(self, database_url: str, redis_url: str, name: str = "worker") -> None:
        self.port = find_port()
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "WORKER_PORT": str(self.port),
            "ADLOOM_PROCESS": name,
        }

    def set(self, variable: str, value: str) -> None:
        self._environment[variable] = value

    @contextlib.contextmanager
    def running(self) -> Generator[subprocess.Popen[bytes]]:
        process = ForkedPopen(
            [sys.executable, "-m", "adloom.app.worker"], env=self._environment, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    async def health(self) -> httpx.Response:
        async with httpx.AsyncClient(timeout=30) as client, asyncio.timeout(60):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    return await client.get(f"http://127.0.0.1:{self.port}/health")
                await asyncio.sleep(0.05)


async def until_counted(pool: Pool, impressions: int) -> None:
    async with asyncio.timeout(60):
        while await pool.fetchval("SELECT sum(impressions) FROM events.event_counts") != impressions:  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.02)


@pytest.fixture
def worker(database_url: str, redis_url: str) -> Worker:
    return Worker(database_url, redis_url)


async def test_a_worker_is_healthy_counts_events_and_stops_on_sigterm(
    worker: Worker, pool: Pool, valkey: Valkey
) -> None:
    await insert_catalog(pool)
    with worker.running() as process:
        answer = await worker.health()
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok", "queue": "stats-sync", "uptime": answer.json()["uptime"]}
        assert answer.json()["uptime"] >= 0

        await ValkeyEventLog(valkey).append([encode_event(an_impression()), encode_event(a_click())])
        await until_counted(pool, 1)

        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0


async def test_a_worker_measures_the_lag_of_each_projection(
    database_url: str, redis_url: str, pool: Pool, valkey: Valkey
) -> None:
    await insert_catalog(pool)
    worker, metrics_port = Worker(database_url, redis_url), find_port()
    worker.set("ADLOOM_METRICS_PORT", str(metrics_port))
    await ValkeyEventLog(valkey).append([encode_event(an_impression("a")), b"no event"])

    with worker.running():
        await worker.health()
        await until_counted(pool, 1)
        async with httpx.AsyncClient(timeout=30) as client, asyncio.timeout(60):
            figures = ""
            while "adloom_ledger_dead_letters 1.0" not in figures:
                await asyncio.sleep(0.1)
                figures = (await client.get(f"http://127.0.0.1:{metrics_port}/metrics")).text

    assert 'adloom_projection_events_total{outcome="counted",projection="event_tables"} 1.0' in figures
    assert 'adloom_projection_events_total{outcome="dead",projection="event_tables"} 1.0' in figures
    assert 'adloom_projection_is_owner{projection="event_tables"} 1.0' in figures
    assert 'adloom_ledger_lag_entries{projection="event_tables"} ' in figures
    assert 'adloom_ledger_lag_entries{projection="frequency"} ' in figures
