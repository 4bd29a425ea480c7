"""`adloom sync`: queues the jobs of a range and waits for them."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pytest
from rich.console import Console

from adloom.cli.days import SyncCommandError, check_days, sync
from adloom.core.clock import ManualClock
from adloom.runtime.jobs.worker import Handler, JobAttempt, JobWorker, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import Secret, Services
from adloom.sync.jobs import QUEUE, SYNC_STATS
from tests.support.builders import UNKNOWN_ID
from tests.sync.shop import DAY, NOW, a_processor, a_seller, tables

FIRST = date(2026, 2, 1)


@pytest.fixture
def service_urls(database_url: str, redis_url: str) -> Services:
    return Services(database_url=Secret(database_url), redis_url=Secret(redis_url))


@asynccontextmanager
async def a_worker(service_urls: Services, handler: Handler) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(
            JobWorker(QUEUE, service_urls.redis_url, {SYNC_STATS: handler}, concurrency=5).run(stop)
        )
        yield
        stop.set()


async def run_sync(service_urls: Services, *, is_terminal: bool = False, **options: Any) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=is_terminal, soft_wrap=True)
    await sync(
        service_urls, FIRST, DAY, clock=ManualClock(NOW), console=console, poll_seconds=0.02, **options
    )
    return file.getvalue()


async def test_a_range_of_all_sellers_is_synced_and_reported_job_by_job(
    pool: Pool, service_urls: Services
) -> None:
    seller, other = await a_seller(pool, campaigns=1), await a_seller(pool, campaigns=1)

    async with a_worker(service_urls, a_processor(pool).handle):
        output = await run_sync(service_urls)

    assert "6 jobs for 2 sellers, 2026-02-01 to 2026-02-19" in output
    for one in (seller, other):
        assert f"sync_{one.id}_2026-02-01_2026-02-19_AD  done" in output
    assert len({row[3] for row in (await tables(pool))["daily"]}) == 19


async def test_a_single_seller_can_be_synced_and_a_terminal_gets_a_progress_bar(
    pool: Pool, service_urls: Services
) -> None:
    seller = await a_seller(pool, campaigns=1)
    await a_seller(pool, campaigns=1)

    async with a_worker(service_urls, a_processor(pool).handle):
        output = await run_sync(service_urls, seller_id=seller.id, is_terminal=True)

    assert "3 jobs for 1 sellers" in output
    assert "3 of 3 jobs" in output


async def test_failed_jobs_are_reported_and_the_command_fails(pool: Pool, service_urls: Services) -> None:
    await a_seller(pool)

    async def refused(_job: JobAttempt) -> None:
        raise PermanentJobError("Meta no longer takes the access token.")

    async with a_worker(service_urls, refused):
        file = io.StringIO()
        with pytest.raises(SyncCommandError, match="3 of 3 jobs have failed"):
            await sync(
                service_urls,
                FIRST,
                DAY,
                clock=ManualClock(NOW),
                console=Console(file=file, width=200),
                poll_seconds=0.02,
            )

    assert "failed: Meta no longer takes the access token." in file.getvalue()


async def test_a_seller_that_does_not_exist_is_an_error(pool: Pool, service_urls: Services) -> None:
    await a_seller(pool)

    async with a_worker(service_urls, a_processor(pool).handle):
        with pytest.raises(SyncCommandError, match=f"There is no seller {UNKNOWN_ID}"):
            await run_sync(service_urls, seller_id=UNKNOWN_ID)


async def test_a_sync_without_sellers_is_an_error(service_urls: Services) -> None:
    with pytest.raises(SyncCommandError, match="no seller"):
        await run_sync(service_urls)


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (date(2026, 2, 2), date(2026, 2, 1), "before --from"),
        (date(2026, 2, 2), date(2026, 2, 21), "today is 2026-02-19"),
        (date(2010, 1, 1), date(2026, 2, 1), "more than 3660 days"),
    ],
)
def test_an_invalid_range_is_refused(first: date, last: date, message: str) -> None:
    with pytest.raises(SyncCommandError, match=message):
        check_days(first, last, today=DAY, error=SyncCommandError)
