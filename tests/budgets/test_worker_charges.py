"""The worker as a process: it charges every event exactly once, also when it was frozen."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from uuid import UUID

import httpx
import pytest

from adloom.core.ids import CampaignId, RequestId
from adloom.core.money import Micros
from adloom.events.log.event import encode_event
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.worker_stage import (
    ADVERTISER,
    Process,
    Stage,
    address_of,
    insert_advertiser,
    insert_campaign,
)
from tests.events.builders import an_impression
from tests.events.catalog import insert_banner, insert_placement
from tests.support.eventually import becomes
from tests.support.forked import ForkedPopen
from tests.support.rows import an_id

pytestmark = pytest.mark.process

COST = Micros(1_000)


class WorkerProcess:
    def __init__(self, database_url: str, redis_url: str, name: str = "worker") -> None:
        self.metrics_port = find_port()
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "WORKER_PORT": str(find_port()),
            "ADLOOM_METRICS_PORT": str(self.metrics_port),
            "ADLOOM_PROCESS": name,
            "ADLOOM_LOG_LEVEL": "error",
        }

    @contextlib.contextmanager
    def running(self) -> Generator[subprocess.Popen[bytes]]:
        process = ForkedPopen(
            [sys.executable, "-m", "adloom.app.worker"], env=self._environment, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.kill()
            _, stderr = process.communicate()
        assert b"Traceback" not in stderr, stderr.decode()

    async def metrics(self) -> str:
        async with httpx.AsyncClient(timeout=30) as client:
            return (await client.get(f"http://127.0.0.1:{self.metrics_port}/metrics")).text


def impressions(first: int, last: int, campaigns: int) -> list[bytes]:
    now = datetime.now(UTC)
    return [
        encode_event(
            an_impression(
                f"i{number}",
                campaign_id=CampaignId(an_id(1_000 + number % campaigns)),
                request_id=RequestId(UUID(int=number + 1)),
                slot=0,
                charge=COST,
                offered_at=int(now.timestamp()),
                occurred_at=now,
                received_at=now,
            )
        )
        for number in range(first, last)
    ]


async def wait_for_entries(pool: Pool, count: int, *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while await pool.fetchval("SELECT count(*) FROM money_entries WHERE kind <> 'release'") < count:  # noqa: ASYNC110 - another process charges
            await asyncio.sleep(0.05)


async def assert_sums_agree(pool: Pool, charges: int) -> None:
    """Check that every charge is there once, and that all tables have the same sum."""
    assert await pool.fetchval("SELECT count(*) FROM money_entries WHERE kind = 'charge'") == charges
    assert (
        await pool.fetchval("SELECT sum(amount_micros) FROM money_entries WHERE kind = 'charge'")
        == charges * COST
    )
    assert await pool.fetchval("SELECT sum(spent_micros) FROM spend_hours") == charges * COST
    for kind in ("campaign", "advertiser"):
        async with asyncio.timeout(60):
            while (  # noqa: ASYNC110 - another process charges
                await pool.fetchval("SELECT sum(spent_micros) FROM spend_days WHERE kind = $1", kind)
                != charges * COST
            ):
                await asyncio.sleep(0.05)


@pytest.fixture
async def catalog(pool: Pool) -> int:
    """Fifty campaigns of one advertiser, each with a budget that lasts."""
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_advertiser(pool)
    for number in range(50):
        await insert_campaign(pool, an_id(1_000 + number), advertiser=ADVERTISER, daily=10_000_000)
    return 50


async def test_a_second_worker_continues_the_charges_of_a_frozen_one_without_repeats(
    database_url: str, redis_url: str, pool: Pool, valkey: Valkey, catalog: int
) -> None:
    ledger = ValkeyEventLog(valkey)
    first, second = (WorkerProcess(database_url, redis_url, name) for name in ("first", "second"))

    with first.running() as frozen:
        await ledger.append(impressions(0, 500, catalog))
        await wait_for_entries(pool, 500)
        with second.running():
            frozen.send_signal(signal.SIGSTOP)
            await ledger.append(impressions(500, 4_000, catalog))
            await wait_for_entries(pool, 4_000)
            frozen.send_signal(signal.SIGCONT)
            await ledger.append(impressions(4_000, 6_000, catalog))
            await wait_for_entries(pool, 6_000)
            await assert_sums_agree(pool, 6_000)

            async def is_handed_over() -> bool:
                owners = ["adloom_brain_is_owner 1.0" in await one.metrics() for one in (first, second)]
                return owners == [False, True]

            await becomes(is_handed_over, seconds=60)


async def test_a_worker_grants_leases_exposes_metrics_and_stops_within_ten_seconds(
    database_url: str, redis_url: str, pool: Pool, valkey: Valkey, catalog: int
) -> None:
    worker, stage = WorkerProcess(database_url, redis_url), Stage(pool, valkey)
    with worker.running() as process:
        async with Process(valkey).listening() as delivery:
            await stage.wait_for_inbox()
            await delivery.send_heartbeat()
            answer = await delivery.ask_for_lease(address_of(an_id(1_000), ADVERTISER))
            await ValkeyEventLog(valkey).append(impressions(0, 40, catalog))
            await wait_for_entries(pool, 40)
            metrics = ""
            async with asyncio.timeout(60):
                while 'adloom_money_entries_total{kind="charge"} 40.0' not in metrics:
                    metrics = await worker.metrics()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0

    assert answer.granted > 0
    for line in (
        "adloom_brain_is_owner 1.0",
        "adloom_brain_sessions 1.0",
        "adloom_brain_leases 1.0",
        "adloom_charged_micros_total 40000.0",
        'adloom_projection_is_owner{projection="charges"} 1.0',
        'adloom_brain_letters_total{outcome="taken"} 2.0',
    ):
        assert line in metrics, line
