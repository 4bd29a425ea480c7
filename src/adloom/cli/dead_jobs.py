"""What `adloom jobs …` does: looks at the dead jobs of a queue, and puts them back."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from adloom.runtime.jobs.queue import DeadJob, JobQueue, open_queue
from adloom.runtime.valkey import VALKEY_AWAY

JOBS_MAX: Final = 1_000  # So many are kept at all.

Say = Callable[[str], None]


class JobsError(Exception):
    """A job cannot be put back, or the queue cannot be read; the message says why."""


async def list_dead(redis_url: str, queue_name: str, say: Say) -> None:
    """Say which jobs ran out of attempts, the last first, and how many others there are."""
    async with _queue(redis_url, queue_name) as queue:
        await queue.refresh_counts()
        for job in await queue.list_dead(count_max=JOBS_MAX):
            say(_line(job))
        counts = queue.counts
        say(f"{counts.dead} dead, {counts.waiting} waiting, {counts.active} active, {counts.delayed} delayed")


async def retry_dead(redis_url: str, queue_name: str, job_ids: Sequence[str] | None, say: Say) -> None:
    """Put jobs back that are named, or all that are dead."""
    async with _queue(redis_url, queue_name) as queue:
        if job_ids is None:
            job_ids = [job.id for job in await queue.list_dead(count_max=JOBS_MAX)]
        missing: list[str] = []
        for job_id in job_ids:
            if await queue.retry(job_id):
                say(f"{job_id} is tried again.")
            else:
                missing.append(job_id)
    if missing:
        raise JobsError(f"Not among the dead: {', '.join(missing)}.")


@asynccontextmanager
async def _queue(redis_url: str, name: str) -> AsyncGenerator[JobQueue]:
    try:
        async with open_queue(name, redis_url) as queue:
            yield queue
    except VALKEY_AWAY as error:
        raise JobsError(f"The queue cannot be read: {error or type(error).__name__}") from error


def _line(job: DeadJob) -> str:
    # What an error says may have lines of its own.
    reason = " ".join(job.reason.split())
    return f"{job.id}  {job.name}  {job.died_at:%Y-%m-%dT%H:%M:%SZ}  {job.attempts} attempts  {reason}"
