"""A queue of jobs on BullMQ: each job has an id, and a job with the same id is not put twice."""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, cast

import bullmq
import msgspec
from bullmq import redis_connection
from bullmq.types import JobOptions, KeepJobs
from redis.exceptions import ResponseError

from adloom.runtime.listing import Listed
from adloom.runtime.valkey import Valkey, make_client

# BullMQ blocks for up to 10 s when there is nothing to do, and the answer must still come in time.
ANSWER_SECONDS_MAX: Final = 15.0
# BullMQ's own key prefix: operators' tools look for it.
PREFIX: Final = "bull"
ATTEMPTS_MAX: Final = 5
BACKOFF_MILLISECONDS: Final = 1_000  # 1, 2, 4 and 8 s between the attempts.
# Done jobs are remembered so that their ids are not put again: two days of a job a minute, and some more.
DONE_KEPT: Final[KeepJobs] = {"age": 2 * 24 * 3600, "count": 5_000}
# Jobs without attempts left stay for people to look at and to retry.
DEAD_KEPT: Final[KeepJobs] = {"age": 30 * 24 * 3600, "count": 1_000}
# People call all of these BullMQ lists waiting; `delayed` jobs wait for their next attempt.
WAITING: Final = ("waiting", "prioritized", "delayed", "paused")
ENDED: Final = frozenset({"completed", "failed", "unknown"})
# What reading a job raises that another program has put, or whose fields are broken.
UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError),
    ResponseError,
)
UNREADABLE_NAME: Final = "unreadable"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# The library reads its scripts anew for every queue and worker, and keeps them: 0.3 MB each.
redis_connection.loadScript = cache(redis_connection.loadScript)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a queue has by state; `delayed` jobs wait for their next attempt."""

    waiting: int = 0
    active: int = 0
    delayed: int = 0
    dead: int = 0


class JobState(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to put; jobs without a priority go first, then those with the lowest number."""

    id: str
    name: str
    data: Mapping[str, str] = {}
    priority: int = 0


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the queue; `progress` is the share that is done."""

    id: str
    name: str
    data: Mapping[str, str]
    state: JobState
    attempts: int
    progress: float
    error: str | None
    put_at: datetime
    ended_at: datetime | None


class JobQueue:
    """Takes jobs; any number of processes may put the same one."""

    def __init__(
        self, queue: bullmq.Queue, *, attempts_max: int, backoff: Mapping[str, Any], kept: Mapping[str, Any]
    ) -> None:
        self.name: Final = queue.name
        self.counts = JobCounts()
        self._queue = queue
        self._options = {"attempts": attempts_max, "backoff": dict(backoff), **kept}
        self._putting = asyncio.Lock()

    async def put(
        self, name: str, *, job_id: str, data: Mapping[str, str] | None = None, priority: int = 0
    ) -> None:
        """Put a job, unless one with this id waits, runs, was done recently or is dead."""
        job = NewJob(id=job_id, name=name, data=data or {}, priority=priority)
        await self._queue.add(name, dict(job.data), cast("JobOptions", self._build_job_options(job)))
        await self.refresh_counts()

    async def put_again(self, jobs: Sequence[NewJob]) -> int:
        """Put the jobs that neither wait nor run, in place of ended ones with their ids; return how many."""
        # Of two requests of this process for the same job, one puts it and the other finds it.
        async with self._putting:
            new = [job for job in jobs if await self._make_room(job.id)]
            if new:
                await self._queue.addBulk(
                    [
                        {"name": job.name, "data": dict(job.data), "opts": self._build_job_options(job)}
                        for job in new
                    ]
                )
        return len(new)

    async def refresh_counts(self) -> None:
        found = cast("dict[str, int]", await self._queue.getJobCounts(*WAITING, "active", "failed"))
        self.counts = JobCounts(
            waiting=found["waiting"] + found["prioritized"] + found["paused"],
            active=found["active"],
            delayed=found["delayed"],
            dead=found["failed"],
        )

    async def list_dead(self, *, count_max: int) -> Sequence[ListedJob]:
        """Return the jobs without attempts left, the last first."""
        return (await self.list_jobs(JobState.FAILED, first=0, count_max=count_max)).items

    async def list_jobs(self, state: JobState, *, first: int, count_max: int) -> Listed[ListedJob]:
        kinds = list[str](WAITING) if state is JobState.WAITING else [state.value]
        counts = cast("dict[str, int]", await self._queue.getJobCounts(*kinds))
        # The library cuts each of its lists by itself, so several are read from their beginning.
        begin = first if len(kinds) == 1 else 0
        found = await self._read_jobs(state, kinds, begin, first + count_max - 1)
        jobs = sorted(found, key=_get_age, reverse=True)
        begin = 0 if len(kinds) == 1 else first
        return Listed(items=jobs[begin : begin + count_max], total_count=sum(counts.values()))

    async def find(self, job_id: str) -> ListedJob | None:
        state = await self._queue.getJobState(job_id)
        if state == "unknown":
            return None
        return await self._read_job(job_id, JobState.WAITING if state in WAITING else JobState(state))

    async def retry(self, job_id: str, *, died_before: datetime | None = None) -> bool:
        """Put a dead job back with all its attempts; False if it is not dead (for long enough), or unreadable."""
        try:
            job = await self._queue.getJob(job_id)
        except UNREADABLE:
            return False
        if job is None or await self._queue.getJobState(job_id) != "failed":
            return False
        if died_before is not None and _convert_to_moment(job.finishedOn) >= died_before:
            return False
        await job.retry("failed", {"resetAttemptsMade": True, "resetAttemptsStarted": True})
        await self.refresh_counts()
        return True

    async def _read_jobs(self, state: JobState, kinds: list[str], begin: int, end: int) -> list[ListedJob]:
        """Read a range of jobs; one by one where one of them cannot be read."""
        try:
            found = cast("list[bullmq.Job | None]", await self._queue.getJobs(kinds, begin, end, False))  # noqa: FBT003 - the library's order
            return [_describe_job(job, state) for job in found if job is not None]
        except UNREADABLE:
            ids = cast("list[str]", await self._queue.backend.getRanges(kinds, begin, end, False))  # noqa: FBT003 - likewise
            jobs = [await self._read_job(job_id, state) for job_id in dict.fromkeys(ids)]
            return [job for job in jobs if job is not None]

    async def _read_job(self, job_id: str, state: JobState) -> ListedJob | None:
        try:
            job = await self._queue.getJob(job_id)
            return None if job is None else _describe_job(job, state)
        except UNREADABLE as error:
            return _describe_unreadable(job_id, state, error)

    async def _make_room(self, job_id: str) -> bool:
        state = await self._queue.getJobState(job_id)
        if state not in ENDED:
            return False
        if state != "unknown":
            await self._queue.remove(job_id)
        return True

    def _build_job_options(self, job: NewJob) -> dict[str, Any]:
        assert job.id, "a job without an id could be put twice"
        assert ":" not in job.id, "BullMQ separates the parts of its keys by colons"
        return {**self._options, "jobId": job.id, "priority": job.priority}


@asynccontextmanager
async def open_queue(  # noqa: PLR0913 - how the jobs of a queue are repeated and kept
    name: str,
    redis_url: str,
    *,
    attempts_max: int = ATTEMPTS_MAX,
    backoff_milliseconds: int = BACKOFF_MILLISECONDS,
    backoff_type: str = "exponential",
    done_kept: KeepJobs | int = DONE_KEPT,
    dead_kept: KeepJobs | int = DEAD_KEPT,
    answer_seconds_max: float = ANSWER_SECONDS_MAX,
) -> AsyncGenerator[JobQueue]:
    """Open a queue, and close it at the end; with the backoff type `custom` the worker decides how long."""
    queue = bullmq.Queue(
        name,
        {
            "connection": make_jobs_client(redis_url, answer_seconds_max=answer_seconds_max),
            "prefix": PREFIX,
            "skipVersionCheck": True,
        },
    )
    try:
        yield JobQueue(
            queue,
            attempts_max=attempts_max,
            backoff={"type": backoff_type, "delay": backoff_milliseconds},
            kept={"removeOnComplete": done_kept, "removeOnFail": dead_kept},
        )
    finally:
        await queue.close()


def make_jobs_client(redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX) -> Valkey:
    """Make the Valkey client of BullMQ; it connects when it is first used, and its waits are bounded.

    The library's own client tries again for minutes without a word.
    """
    return make_client(redis_url, answer_seconds_max=answer_seconds_max, is_decoding=True)


def _describe_job(job: bullmq.Job, state: JobState) -> ListedJob:
    progress = cast("object", job.progress)
    return ListedJob(
        id=str(job.id),
        name=msgspec.convert(job.name, str),
        data=msgspec.convert(job.data, dict[str, str]),
        state=state,
        attempts=job.attemptsMade,
        progress=float(progress) if isinstance(progress, int | float) and math.isfinite(progress) else 0.0,
        error=job.failedReason or None,
        put_at=_convert_to_moment(job.timestamp),
        ended_at=_convert_to_moment(job.finishedOn) if job.finishedOn else None,
    )


def _describe_unreadable(job_id: str, state: JobState, error: Exception) -> ListedJob:
    return ListedJob(
        id=job_id,
        name=UNREADABLE_NAME,
        data={},
        state=state,
        attempts=0,
        progress=0.0,
        error=f"The job cannot be read: {error!r}. Another program may have put it.",
        put_at=_EPOCH,
        ended_at=None,
    )


def _convert_to_moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp(int(milliseconds or 0) / 1000, UTC)


def _get_age(job: ListedJob) -> tuple[datetime, str]:
    return job.ended_at or job.put_at, job.id
