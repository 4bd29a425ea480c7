"""The queue of stats sync.

A job is known by its seller, days and level. While it waits or runs it is not put again; one that has ended makes
room for the next of the same id, because the same days are synced again and again.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID

from adloom.runtime.jobs.queue import (
    ANSWER_SECONDS_MAX,
    JobCounts,
    JobQueue,
    JobState,
    ListedJob,
    NewJob,
    open_queue,
)
from adloom.sync.jobs import (
    ATTEMPTS_MAX,
    BACKOFF,
    DONE_KEPT,
    FAILED_KEPT,
    PRIORITIES,
    QUEUE,
    SYNC_STATS,
    SyncJob,
    belongs_to,
    find_covering,
    find_sync,
)

LISTED_MAX: Final = 5_000


class PutJobs(NamedTuple):
    """How many jobs were put, and the ids of those that fetch what was asked for, in its order."""

    enqueued: int
    ids: list[str]


class StatsQueue:
    """Takes the jobs of stats sync, and lists them by seller."""

    def __init__(self, queue: JobQueue) -> None:
        self.queue: Final = queue
        self.find = queue.find
        self.retry = queue.retry
        self.refresh_counts = queue.refresh_counts

    @property
    def counts(self) -> JobCounts:
        return self.queue.counts

    async def put(self, jobs: Sequence[SyncJob]) -> int:
        """Put the jobs that neither wait nor run, and return how many those are."""
        return await self.queue.put_again(
            [
                NewJob(id=job.id, name=SYNC_STATS, data=job.payload, priority=PRIORITIES[job.origin])
                for job in jobs
            ]
        )

    async def put_missing(self, jobs: Sequence[SyncJob], seller_id: UUID) -> PutJobs:
        """Put the jobs of a seller whose days no other job has in hand."""
        in_hand = [
            job
            for state in (JobState.ACTIVE, JobState.WAITING)
            for listed in await self.list_jobs(state, seller_id=seller_id)
            if (job := find_sync(listed.data)) is not None
        ]
        covering = [find_covering(job, in_hand) for job in jobs]
        put = await self.put([job for job, other in zip(jobs, covering, strict=True) if other is None])
        return PutJobs(put, [(other or job).id for job, other in zip(jobs, covering, strict=True)])

    async def list_jobs(self, state: JobState, *, seller_id: UUID | None = None) -> list[ListedJob]:
        """Return the jobs in a state, the last first; of one seller, or of all."""
        listed = await self.queue.list_jobs(state, first=0, count_max=LISTED_MAX)
        return [job for job in listed.items if seller_id is None or belongs_to(job.id, seller_id)]


@asynccontextmanager
async def open_stats_queue(
    redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX
) -> AsyncGenerator[StatsQueue]:
    async with open_queue(
        QUEUE,
        redis_url,
        attempts_max=ATTEMPTS_MAX,
        # The worker decides how long: a platform that throttles may ask for more.
        backoff_type="custom",
        backoff_milliseconds=int(BACKOFF[0].total_seconds() * 1000),
        done_kept=DONE_KEPT,
        dead_kept=FAILED_KEPT,
        answer_seconds_max=answer_seconds_max,
    ) as queue:
        yield StatsQueue(queue)
