"""The queues of background jobs over HTTP: for admins, and for viewers to look at."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import Depends, Query, status
from pydantic import Field

from adloom.core.caller import Caller
from adloom.core.errors import ConflictError, ForbiddenError, NotFoundError
from adloom.resource.access import require_admin
from adloom.runtime.http.api.dependencies import CurrentCaller, depend_on, make_router
from adloom.runtime.http.api.pages import Page
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.jobs.queue import JobQueue, JobState
from adloom.runtime.listing import PAGE_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX

RETRIED_MAX: Final = 1_000  # So many dead jobs are kept at all.


class QueueNotFoundError(NotFoundError):
    """No such queue."""

    code = "QUEUE_NOT_FOUND"


class JobNotFailedError(ConflictError):
    """Only a job that has failed can be tried again."""

    code = "JOB_NOT_FAILED"


class QueueAnswer(Answer):
    """A queue, and how many jobs it has, by where they are; `delayed` wait for their next attempt."""

    name: str
    waiting: int
    active: int
    delayed: int
    failed: int


class QueuesAnswer(Answer):
    """All queues."""

    items: list[QueueAnswer]


class QueuedJob(Answer):
    """A job; `progress` is the share that is done."""

    id: str
    name: str
    state: JobState
    attempts: int
    progress: float
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class RetriedAnswer(Answer):
    """How many jobs are tried again."""

    retried: int


class QueuedJobsQuery(Body):
    """Which jobs are listed, those that were put or ended last first."""

    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE_MAX)] = PAGE_SIZE_DEFAULT
    state: JobState = JobState.FAILED


async def _require_reader(caller: CurrentCaller) -> Caller:
    if not caller.sees_all:
        raise ForbiddenError(
            "Background jobs are for admins and viewers. Yours are under /api/ads-manager/jobs."
        )
    return caller


async def _require_admin(caller: CurrentCaller) -> UUID | None:
    return require_admin(caller).account_id


Queues = Annotated[Mapping[str, JobQueue], depend_on("job_queues")]

router = make_router("/admin/jobs", "jobs", 400, 401, 403, 404, 409, 503)


@router.get("", dependencies=[Depends(_require_reader)])
async def list_queues(queues: Queues) -> QueuesAnswer:
    """List the queues, and how much is in them."""
    items: list[QueueAnswer] = []
    for name, queue in queues.items():
        await queue.refresh_counts()
        counts = queue.counts
        items.append(QueueAnswer(name=name, failed=counts.dead, **msgspec.structs.asdict(counts)))
    return QueuesAnswer(items=items)


@router.get("/{queue_name}", dependencies=[Depends(_require_reader)])
async def list_jobs(
    queue_name: str, query: Annotated[QueuedJobsQuery, Query()], queues: Queues
) -> Page[QueuedJob]:
    """List the jobs of a queue in one state."""
    queue = _find_queue(queues, queue_name)
    first = (query.page - 1) * query.page_size
    listed = await queue.list_jobs(query.state, first=first, count_max=query.page_size)
    return Page[QueuedJob](
        items=[QueuedJob(created_at=job.put_at, **msgspec.structs.asdict(job)) for job in listed.items],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )


@router.post(
    "/{queue_name}/retry", status_code=status.HTTP_202_ACCEPTED, dependencies=[Depends(_require_admin)]
)
async def retry_jobs(queue_name: str, queues: Queues) -> RetriedAnswer:
    """Retry all failed jobs of a queue, with all their attempts."""
    queue = _find_queue(queues, queue_name)
    dead = await queue.list_dead(count_max=RETRIED_MAX)
    return RetriedAnswer(retried=sum([await queue.retry(job.id) for job in dead]))


@router.post(
    "/{queue_name}/{job_id}/retry",
    status_code=status.HTTP_202_ACCEPTED,
    dependencies=[Depends(_require_admin)],
)
async def retry_job(queue_name: str, job_id: str, queues: Queues) -> RetriedAnswer:
    """Retry a failed job, with all its attempts."""
    if not await _find_queue(queues, queue_name).retry(job_id):
        raise JobNotFailedError("No job of this id has failed in this queue. There is nothing to retry.")
    return RetriedAnswer(retried=1)


def _find_queue(queues: Mapping[str, JobQueue], name: str) -> JobQueue:
    if name not in queues:
        raise QueueNotFoundError(f"There is no queue of this name. There are {', '.join(queues)}.")
    return queues[name]
