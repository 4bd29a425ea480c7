"""`adloom sync`: puts the jobs of a range and follows them to their end."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pytest
from rich.console import Console

from adloom.cli.days import SyncCommandError, check_days, sync
from adloom.cli.user_errors import user_message
from adloom.core.clock import ManualClock
from adloom.runtime.jobs.worker import Handler, JobAttempt, JobWorker, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import Secret, Services
from adloom.sync.jobs import QUEUE, SYNC_STATS
from tests.sync.shop import DAY, NOW, a_processor, a_seller, tables

FIRST = date(2026, 2, 1)


@pytest.fixture
def where(database_url: str, redis_url: str) -> Services:
    return Services(database_url=Secret(database_url), redis_url=Secret(redis_url))


@asynccontextmanager
async def a_worker(where: Services, handler: Handler) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(JobWorker(QUEUE, where.redis_url, {SYNC_STATS: handler}, concurrency=5).run(stop))
        yield
        stop.set()


async def said_by(where: Services, *, is_terminal: bool = False, **given: Any) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, force_terminal=is_terminal, soft_wrap=True)
    await sync(where, FIRST, DAY, clock=ManualClock(NOW), console=console, look_seconds=0.02, **given)
    return file.getvalue()


async def test_a_range_of_all_sellers_is_synced_and_reported_job_by_job(pool: Pool, where: Services) -> None:
    seller, other = await a_seller(pool, campaigns=1), await a_seller(pool, campaigns=1)

    async with a_worker(where, a_processor(pool).handle):
        said = await said_by(where)

    assert "6 jobs for 2 sellers, 2026-02-01 to 2026-02-19" in said
    for one in (seller, other):
        assert f"sync_{one.id}_2026-02-01_2026-02-19_AD  done" in said
    assert len({row[3] for row in (await tables(pool))["daily"]}) == 19


async def test_one_seller_can_be_named_and_a_terminal_sees_a_bar(pool: Pool, where: Services) -> None:
    seller = await a_seller(pool, campaigns=1)
    await a_seller(pool, campaigns=1)

    async with a_worker(where, a_processor(pool).handle):
        said = await said_by(where, seller_id=seller.id, is_terminal=True)

    assert "3 jobs for 1 sellers" in said
    assert "100 %" in said


async def test_failed_jobs_are_reported_and_the_command_fails(pool: Pool, where: Services) -> None:
    await a_seller(pool)

    async def refused(_job: JobAttempt) -> None:
        raise PermanentJobError("Meta no longer takes the access token.")

    async with a_worker(where, refused):
        file = io.StringIO()
        with pytest.raises(SyncCommandError, match="3 of 3 jobs have failed") as raised:
            await sync(
                where,
                FIRST,
                DAY,
                clock=ManualClock(NOW),
                console=Console(file=file, width=200),
                look_seconds=0.02,
            )

    assert "failed: Meta no longer takes the access token." in file.getvalue()
    assert user_message(raised.value) is not None


async def test_a_sync_without_sellers_is_an_error(where: Services) -> None:
    with pytest.raises(SyncCommandError, match="no seller"):
        await said_by(where)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (date(2026, 2, 2), date(2026, 2, 1), "before --from"),
        (date(2026, 2, 2), date(2026, 2, 21), "today is 2026-02-19"),
        (date(2010, 1, 1), date(2026, 2, 1), "more than 3660 days"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(first: date, last: date, said: str) -> None:
    with pytest.raises(SyncCommandError, match=said):
        check_days(first, last, today=DAY, error=SyncCommandError)
