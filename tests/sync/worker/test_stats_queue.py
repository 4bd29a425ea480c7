"""The queue of stats sync: a waiting or running job is not put again, an ended one may be."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from adloom.core.ids import SystemIds
from adloom.runtime.jobs.queue import JobState
from adloom.runtime.jobs.worker import Handler, JobAttempt, JobWorker, PermanentJobError
from adloom.sync.jobs import (
    BACKOFF,
    CONCURRENCY,
    QUEUE,
    SYNC_STATS,
    Origin,
    SyncJob,
    build_jobs,
    parse_job,
    split_days,
)
from adloom.sync.queue import StatsQueue, open_stats_queue
from adloom.sync.words import Level
from tests.support.eventually import eventually
from tests.sync.shop import DAY

SELLER = SystemIds().make()


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[StatsQueue]:
    async with open_stats_queue(redis_url) as opened:
        yield opened


@asynccontextmanager
async def working(
    redis_url: str, handler: Handler, *, concurrency: int = 5, is_quiet: bool = False
) -> AsyncGenerator[JobWorker]:
    stop = asyncio.Event()
    worker = JobWorker(
        QUEUE,
        redis_url,
        {SYNC_STATS: handler},
        concurrency=concurrency,
        backoff=lambda _attempt, _error: timedelta(),
        is_quiet=is_quiet,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()


def today(seller_id: UUID = SELLER) -> list[SyncJob]:
    return build_jobs(seller_id, DAY, DAY, Origin.MANUAL)


async def ids(queue: StatsQueue, state: JobState, seller_id: UUID | None = None) -> set[str]:
    return {one.id for one in await queue.list_jobs(state, seller_id=seller_id)}


def test_a_job_id_has_the_parts_of_the_specification() -> None:
    job = SyncJob(seller_id=SELLER, date_from=DAY, date_to=DAY, level=Level.ADSET)

    assert job.id == f"sync_{SELLER}_2026-02-19_2026-02-19_ADSET"
    assert ":" not in job.id
    assert parse_job(job.payload) == job


def test_a_range_is_split_into_parts() -> None:
    last = DAY + timedelta(days=8)

    assert list(split_days(DAY, last, days_max=7)) == [
        (DAY, DAY + timedelta(days=6)),
        (DAY + timedelta(days=7), last),
    ]


async def test_a_waiting_job_is_not_put_twice(queue: StatsQueue) -> None:
    assert await queue.put(today()) == 3
    assert await queue.put(today()) == 0

    assert len(await ids(queue, JobState.WAITING)) == 3


async def test_of_many_concurrent_requests_one_puts_the_jobs(queue: StatsQueue) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(queue.put(today())) for _ in range(10)]

    assert sum(one.result() for one in asked) == 3


async def test_a_running_job_is_not_put_twice(queue: StatsQueue, redis_url: str) -> None:
    go_on = asyncio.Event()

    async def handler(_job: JobAttempt) -> None:
        await go_on.wait()

    await queue.put(today())
    async with working(redis_url, handler):
        async with asyncio.timeout(60):
            while len(await ids(queue, JobState.ACTIVE)) < 3:  # noqa: ASYNC110 - Valkey has no notification for it
                await asyncio.sleep(0.01)
        assert await queue.put(today()) == 0
        go_on.set()


async def test_a_finished_job_can_be_put_again(queue: StatsQueue, redis_url: str) -> None:
    runs: list[str] = []

    async def handler(job: JobAttempt) -> None:
        runs.append(job.id)

    async with working(redis_url, handler) as worker:
        for run_number in (1, 2):
            assert await queue.put(today()) == 3
            await eventually(lambda run_number=run_number: worker.done == 3 * run_number, seconds=30)

    assert sorted(runs) == sorted([job.id for job in today()] * 2)
    assert await ids(queue, JobState.COMPLETED) == {job.id for job in today()}


async def test_a_failed_job_can_be_put_again_and_put_back(queue: StatsQueue, redis_url: str) -> None:
    async def handler(_job: JobAttempt) -> None:
        raise PermanentJobError("The token has expired.")

    await queue.put(today())
    async with working(redis_url, handler) as worker:
        await eventually(lambda: worker.dead == 3, seconds=30)
    (first, *_) = await queue.list_jobs(JobState.FAILED)

    assert (first.error, first.attempts) == ("The token has expired.", 1)
    assert await queue.retry(first.id)
    assert not await queue.retry(first.id)
    assert not await queue.retry("nothing")
    assert await queue.put(today()) == 2


async def test_a_job_has_three_attempts(queue: StatsQueue, redis_url: str) -> None:
    attempts: list[int] = []

    async def handler(job: JobAttempt) -> None:
        attempts.append(job.attempt)
        raise RuntimeError("again")

    await queue.put(today()[:1])
    async with working(redis_url, handler) as worker:
        await eventually(lambda: worker.dead == 1, seconds=30)

    assert attempts == [1, 2, 3]


async def test_a_job_between_attempts_is_waiting(queue: StatsQueue, redis_url: str) -> None:
    async def handler(_job: JobAttempt) -> None:
        raise RuntimeError("again")

    await queue.put(today()[:1])
    stop = asyncio.Event()
    worker = JobWorker(
        QUEUE, redis_url, {SYNC_STATS: handler}, backoff=lambda attempt, _error: timedelta(minutes=attempt)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        await eventually(lambda: worker.failed == 1, seconds=30)
        stop.set()

    assert await ids(queue, JobState.WAITING) == {today()[0].id}
    assert await queue.put(today()[:1]) == 0
    await queue.refresh_counts()
    assert queue.counts.delayed == 1


async def test_manual_jobs_run_before_scheduled_ones_and_those_before_backfills(
    queue: StatsQueue, redis_url: str
) -> None:
    order = (Origin.BACKFILL, Origin.SCHEDULE, Origin.MANUAL)
    days = {origin: DAY - timedelta(days=number) for number, origin in enumerate(order)}
    for origin in order:
        await queue.put(build_jobs(SELLER, days[origin], days[origin], origin)[:1])
    done: list[Origin] = []

    async def handler(job: JobAttempt) -> None:
        done.append(parse_job(job.data).origin)

    assert len(await ids(queue, JobState.WAITING)) == 3
    async with working(redis_url, handler, concurrency=1) as worker:
        await eventually(lambda: worker.done == 3, seconds=30)

    assert done == [Origin.MANUAL, Origin.SCHEDULE, Origin.BACKFILL]


async def test_a_seller_sees_its_own_jobs(queue: StatsQueue) -> None:
    other = SystemIds().make()
    await queue.put([*today(), *today(other)])

    assert await ids(queue, JobState.WAITING, SELLER) == {job.id for job in today()}
    assert len(await ids(queue, JobState.WAITING)) == 6


async def test_the_progress_of_a_job_is_visible(queue: StatsQueue, redis_url: str) -> None:
    async def handler(job: JobAttempt) -> None:
        assert job.report_progress is not None
        await job.report_progress(0.25)

    (job, *_) = today()
    await queue.put([job])
    async with working(redis_url, handler) as worker:
        await eventually(lambda: worker.done == 1, seconds=30)

    seen = await queue.find(job.id)
    assert seen is not None
    assert (seen.progress, seen.state, parse_job(seen.data)) == (0.25, JobState.COMPLETED, job)
    assert await queue.find("nothing") is None


@pytest.mark.parametrize(
    ("is_quiet", "lines"), [(True, []), (False, ["job_failed", "job_failed", "job_buried"])]
)
async def test_each_failed_attempt_has_one_line(
    queue: StatsQueue, redis_url: str, *, is_quiet: bool, lines: list[str]
) -> None:
    async def handler(_job: JobAttempt) -> None:
        raise RuntimeError("again")

    await queue.put(today()[:1])
    with capture_logs() as logs:
        async with working(redis_url, handler, is_quiet=is_quiet) as worker:
            await eventually(lambda: worker.dead == 1, seconds=30)

    loud = [one for one in logs if one["log_level"] != "debug"]
    assert [one["event"] for one in loud] == lines
    assert all("exc_info" not in one for one in loud), "a trace has many lines"


async def test_ended_jobs_are_kept_as_the_specification_says(queue: StatsQueue) -> None:
    await queue.put(today()[:1])

    [job] = await queue.list_jobs(JobState.WAITING)
    found = await queue.queue._queue.getJob(job.id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - what the library keeps

    assert found is not None
    assert (found.opts["removeOnComplete"], found.opts["removeOnFail"]) == (100, 50)
    assert found.opts["attempts"] == 3
    assert (CONCURRENCY, BACKOFF[0]) == (5, timedelta(minutes=1))
