"""The queue of stats sync: which jobs wait, run, are done and have failed; and putting new ones.

A job is known by its seller, days and level. While it waits or runs it is not put again; one that has ended makes
room for the next of the same name, because the same days are synced again and again.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, cast
from uuid import UUID

import bullmq
import msgspec

from adloom.runtime.jobs.connection import PREFIX, jobs_client
from adloom.runtime.jobs.queue import JobCounts
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
    job_from,
)

LISTED_MAX: Final = 5_000
# What the client of a list calls waiting is more than one list of BullMQ's; `delayed` wait for their next attempt.
WAITING: Final = ("waiting", "prioritized", "delayed", "paused")
ENDED: Final = frozenset({"completed", "failed", "unknown"})


class JobState(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"


class SeenJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as somebody who looks sees it; `progress` is the share that is done."""

    id: str
    job: SyncJob
    state: JobState
    attempts: int
    progress: float
    error: str | None
    put_at: datetime
    ended_at: datetime | None


class StatsQueue:
    """Takes the jobs of stats sync, and shows them."""

    def __init__(self, queue: bullmq.Queue) -> None:
        self._queue = queue
        # Of two requests of this process for the same job, one puts it and the other finds it.
        self._turn = asyncio.Lock()
        self.counts = JobCounts()

    async def put(self, jobs: Sequence[SyncJob]) -> int:
        """Put the jobs that neither wait nor run, and tell how many those are."""
        async with self._turn:
            new = [job for job in jobs if await self._has_room(job.id)]
            if new:
                await self._queue.addBulk([_entry(job) for job in new])
        return len(new)

    async def look(self) -> None:
        """Count the jobs anew."""
        found = cast("dict[str, int]", await self._queue.getJobCounts(*WAITING, "active", "failed"))
        self.counts = JobCounts(
            waiting=found["waiting"] + found["prioritized"] + found["paused"],
            active=found["active"],
            delayed=found["delayed"],
            dead=found["failed"],
        )

    async def listed(self, state: JobState, *, seller_id: UUID | None = None) -> list[SeenJob]:
        """List the jobs in a state, the last first; of one seller, or of all."""
        names = list(WAITING) if state is JobState.WAITING else [state.value]
        jobs = cast("list[bullmq.Job | None]", await self._queue.getJobs(names, 0, LISTED_MAX - 1, False))  # noqa: FBT003 - the library's order
        seen = [
            _seen(job, state)
            for job in jobs
            if job is not None and (seller_id is None or belongs_to(str(job.id), seller_id))
        ]
        return sorted(seen, key=lambda one: (one.ended_at or one.put_at, one.id), reverse=True)

    async def find(self, job_id: str) -> SeenJob | None:
        """Look at one job."""
        job = await self._queue.getJob(job_id)
        state = await self._queue.getJobState(job_id)
        if job is None or state == "unknown":
            return None
        return _seen(job, JobState.WAITING if state in WAITING else JobState(state))

    async def retry(self, job_id: str) -> bool:
        """Put a failed job back with all its attempts; False where no such job has failed."""
        job = await self._queue.getJob(job_id)
        if job is None or await self._queue.getJobState(job_id) != "failed":
            return False
        await job.retry("failed", {"resetAttemptsMade": True, "resetAttemptsStarted": True})
        return True

    async def _has_room(self, job_id: str) -> bool:
        """Tell whether a job can be put; one that has ended is forgotten for it."""
        state = await self._queue.getJobState(job_id)
        if state not in ENDED:
            return False
        if state != "unknown":
            await self._queue.remove(job_id)
        return True


@asynccontextmanager
async def open_stats_queue(redis_url: str) -> AsyncGenerator[StatsQueue]:
    """Open the queue, and close it at the end."""
    queue = bullmq.Queue(
        QUEUE, {"connection": jobs_client(redis_url), "prefix": PREFIX, "skipVersionCheck": True}
    )
    try:
        yield StatsQueue(queue)
    finally:
        await queue.close()


def job_ids(jobs: Iterable[SyncJob]) -> list[str]:
    """Name some jobs."""
    return [job.id for job in jobs]


def _entry(job: SyncJob) -> dict[str, Any]:
    return {
        "name": SYNC_STATS,
        "data": job.payload,
        "opts": {
            "jobId": job.id,
            "attempts": ATTEMPTS_MAX,
            # The worker knows how long; a platform that throttles may ask for more.
            "backoff": {"type": "custom", "delay": int(BACKOFF[0].total_seconds() * 1000)},
            "priority": PRIORITIES[job.origin],
            "removeOnComplete": DONE_KEPT,
            "removeOnFail": FAILED_KEPT,
        },
    }


def _seen(job: bullmq.Job, state: JobState) -> SeenJob:
    return SeenJob(
        id=str(job.id),
        job=job_from(cast("dict[str, str]", job.data)),
        state=state,
        attempts=job.attemptsMade,
        progress=float(job.progress) if isinstance(job.progress, int | float) else 0.0,
        error=job.failedReason or None,
        put_at=_moment(job.timestamp),
        ended_at=_moment(job.finishedOn) if job.finishedOn else None,
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
