"""Jobs without attempts left can be listed and put back; jobs with a priority wait for the others."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.worker import JobAttempt
from tests.support.eventually import eventually
from tests.support.jobs import working

QUEUE = "testing"


class Work:
    """A handler that fails while a test asks for it."""

    def __init__(self) -> None:
        self.is_failing = True
        self.seen: list[tuple[str, int]] = []

    async def __call__(self, job: JobAttempt) -> None:
        self.seen.append((job.id, job.attempt))
        if self.is_failing:
            raise OSError("the disk\nis full")


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[JobQueue]:
    async with open_queue(QUEUE, redis_url, attempts_max=2, backoff_milliseconds=10) as queue:
        yield queue


async def test_a_dead_job_has_its_error_and_can_be_retried_with_all_attempts(
    queue: JobQueue, redis_url: str
) -> None:
    work = Work()

    async with working(QUEUE, redis_url, work) as worker:
        await queue.put("work", job_id="one")
        await eventually(lambda: worker.dead == 1, seconds=30)
        [dead] = await queue.list_dead(count_max=10)
        assert (dead.id, dead.name, dead.attempts, dead.error) == ("one", "work", 2, "the disk\nis full")
        assert dead.ended_at is not None
        assert abs(datetime.now(UTC) - dead.ended_at) < timedelta(minutes=1)

        assert not await queue.retry("one", died_before=dead.ended_at)
        assert await queue.retry("one", died_before=dead.ended_at + timedelta(milliseconds=1))
        await eventually(lambda: worker.dead == 2, seconds=30)
        work.is_failing = False
        assert await queue.retry("one")
        await eventually(lambda: worker.done == 1, seconds=30)
        await queue.refresh_counts()

    assert work.seen == [("one", 1), ("one", 2), ("one", 1), ("one", 2), ("one", 1)]
    assert queue.counts.dead == 0
    assert await queue.list_dead(count_max=10) == []


async def test_only_a_dead_job_is_put_back(queue: JobQueue) -> None:
    await queue.put("work", job_id="waits")

    assert not await queue.retry("waits")
    assert not await queue.retry("unknown")
    assert queue.counts.waiting == 1


async def test_jobs_with_a_priority_wait_for_those_without(queue: JobQueue, redis_url: str) -> None:
    work = Work()
    work.is_failing = False
    for number in range(3):
        await queue.put("work", job_id=f"large-{number}", priority=10)
    await queue.put("work", job_id="small")
    await queue.put("work", job_id="large-0", priority=10)
    assert queue.counts.waiting == 4

    async with working(QUEUE, redis_url, work) as worker:
        await eventually(lambda: worker.done == 4, seconds=30)

    assert [job_id for job_id, _ in work.seen] == ["small", "large-0", "large-1", "large-2"]
