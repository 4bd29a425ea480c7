"""A queue of jobs: each has an id, and the same id is put once."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, cast

import bullmq
import msgspec
from bullmq.types import KeepJobs

from adloom.runtime.jobs.connection import PREFIX, jobs_client
from adloom.runtime.listing import Listed

ATTEMPTS_MAX: Final = 5
BACKOFF_MILLISECONDS: Final = 1_000  # 1, 2, 4 and 8 s between the attempts.
# What is done is remembered, so that its id is not put again: two days of a job a minute, and room.
DONE_KEPT: Final[KeepJobs] = {"age": 2 * 24 * 3600, "count": 5_000}
# What ran out of attempts stays for people to look at, and to put back.
DEAD_KEPT: Final[KeepJobs] = {"age": 30 * 24 * 3600, "count": 1_000}


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a queue has, by where they are; `delayed` wait for their next attempt."""

    waiting: int = 0
    active: int = 0
    delayed: int = 0
    dead: int = 0


class DeadJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that ran out of attempts, and what the last one said."""

    id: str
    name: str
    attempts: int
    reason: str
    died_at: datetime


class ListedState(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as somebody who looks sees it; `progress` is the share that is done."""

    id: str
    name: str
    state: ListedState
    attempts: int
    progress: float
    error: str | None
    put_at: datetime
    ended_at: datetime | None


# What people call waiting is more than one list of BullMQ's.
WAITING: Final = ("waiting", "prioritized", "delayed", "paused")


class JobQueue:
    """Takes jobs; any number of processes may put the same one."""

    def __init__(self, queue: bullmq.Queue, *, attempts_max: int, backoff_milliseconds: int) -> None:
        self.name: Final = queue.name
        self.counts = JobCounts()
        self._queue = queue
        self._attempts_max = attempts_max
        self._backoff_milliseconds = backoff_milliseconds

    async def put(
        self, name: str, *, job_id: str, data: Mapping[str, str] | None = None, priority: int = 0
    ) -> None:
        """Put a job, unless one with this id waits, runs, was done lately, or lies dead.

        Those without a priority go first, then those with the lowest.
        """
        assert job_id, "a job without an id could be put twice"
        assert ":" not in job_id, "BullMQ parts its keys by colons"
        await self._queue.add(
            name,
            dict(data or {}),
            {
                "jobId": job_id,
                "attempts": self._attempts_max,
                "backoff": {"type": "exponential", "delay": self._backoff_milliseconds},
                "removeOnComplete": DONE_KEPT,
                "removeOnFail": DEAD_KEPT,
                "priority": priority,
            },
        )
        await self.refresh_counts()

    async def refresh_counts(self) -> None:
        """Count the jobs anew."""
        states = ("waiting", "prioritized", "active", "delayed", "failed")
        found = cast("dict[str, int]", await self._queue.getJobCounts(*states))
        self.counts = JobCounts(
            waiting=found["waiting"] + found["prioritized"],
            active=found["active"],
            delayed=found["delayed"],
            dead=found["failed"],
        )

    async def list_dead(self, *, count_max: int) -> Sequence[DeadJob]:
        """Tell the jobs that ran out of attempts, the last first."""
        jobs = cast("list[bullmq.Job]", await self._queue.getFailed(0, count_max - 1))
        return [
            DeadJob(
                id=str(job.id),
                name=job.name,
                attempts=job.attemptsMade,
                reason=job.failedReason or "",
                died_at=_moment(job.finishedOn),
            )
            for job in jobs
        ]

    async def list_jobs(self, state: ListedState, *, first: int, count_max: int) -> Listed[ListedJob]:
        """List a part of the jobs in a state, the last first."""
        kinds = list(WAITING) if state is ListedState.WAITING else [state.value]
        counts = cast("dict[str, int]", await self._queue.getJobCounts(*kinds))
        # Each list of the library's is cut by itself, so that several are read from their beginning.
        begin = first if len(kinds) == 1 else 0
        found = cast(
            "list[bullmq.Job | None]",
            await self._queue.getJobs(kinds, begin, first + count_max - 1, False),  # noqa: FBT003 - the library's order
        )
        jobs = sorted((_listed(job, state) for job in found if job is not None), key=_newest, reverse=True)
        begin = 0 if len(kinds) == 1 else first
        return Listed(items=jobs[begin : begin + count_max], total_count=sum(counts.values()))

    async def retry(self, job_id: str, *, died_before: datetime | None = None) -> bool:
        """Put a dead job back with all its attempts; False where no such job lies dead, or not for long enough."""
        job = await self._queue.getJob(job_id)
        if job is None or await self._queue.getJobState(job_id) != "failed":
            return False
        if died_before is not None and _moment(job.finishedOn) >= died_before:
            return False
        await job.retry("failed", {"resetAttemptsMade": True, "resetAttemptsStarted": True})
        await self.refresh_counts()
        return True


@asynccontextmanager
async def open_queue(
    name: str,
    redis_url: str,
    *,
    attempts_max: int = ATTEMPTS_MAX,
    backoff_milliseconds: int = BACKOFF_MILLISECONDS,
) -> AsyncGenerator[JobQueue]:
    """Open a queue to put jobs into, and close it at the end."""
    queue = bullmq.Queue(
        name, {"connection": jobs_client(redis_url), "prefix": PREFIX, "skipVersionCheck": True}
    )
    try:
        yield JobQueue(queue, attempts_max=attempts_max, backoff_milliseconds=backoff_milliseconds)
    finally:
        await queue.close()


def _moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp(int(milliseconds or 0) / 1000, UTC)


def _listed(job: bullmq.Job, state: ListedState) -> ListedJob:
    return ListedJob(
        id=str(job.id),
        name=job.name,
        state=state,
        attempts=job.attemptsMade,
        progress=float(job.progress) if isinstance(job.progress, int | float) else 0.0,
        error=job.failedReason or None,
        put_at=_moment(job.timestamp),
        ended_at=_moment(job.finishedOn) if job.finishedOn else None,
    )


def _newest(job: ListedJob) -> tuple[datetime, str]:
    return job.ended_at or job.put_at, job.id
