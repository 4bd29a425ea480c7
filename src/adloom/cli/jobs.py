"""`adloom jobs …`: lists the dead jobs of the queues, and retries them."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from adloom.cli.options import GROUP, DataDir, resolve_redis_url
from adloom.core.errors import CommandError, describe_error

if TYPE_CHECKING:
    from adloom.runtime.jobs.queue import JobQueue, ListedJob

JOBS_MAX: Final = 1_000  # The queue keeps no more.

app = typer.Typer(
    name="jobs",
    help="Look at jobs that failed, and try them again.",
    **GROUP,
)

QueueName = Annotated[
    str | None, typer.Option("--queue", help="Only this queue; all of them by default.", show_default=False)
]
Print = Callable[[str], None]


class JobsError(CommandError):
    """A job cannot be retried, or the queue cannot be read; the message says why."""


@app.command("list")
def list_jobs(*, queue: QueueName = None, data_dir: DataDir = None) -> None:
    """List the jobs that ran out of attempts, the last first, and count the others."""
    asyncio.run(list_dead(resolve_redis_url(data_dir), _choose_queues(queue), typer.echo))


@app.command()
def retry(
    job_ids: Annotated[list[str] | None, typer.Argument(help="Ids of dead jobs.", show_default=False)] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that are dead.")] = False,
    queue: QueueName = None,
    data_dir: DataDir = None,
) -> None:
    """Put dead jobs back into their queues, with all their attempts."""
    if bool(job_ids) == every:
        raise JobsError("Name the jobs, or --all; `adloom jobs list` tells which are dead.")
    asyncio.run(retry_dead(resolve_redis_url(data_dir), _choose_queues(queue), job_ids or None, typer.echo))


async def list_dead(redis_url: str, queue_names: Sequence[str], print_line: Print) -> None:
    for name in queue_names:
        async with _open_queue(redis_url, name) as queue:
            await queue.refresh_counts()
            for job in await queue.list_dead(count_max=JOBS_MAX):
                print_line(_describe(job))
            counts = queue.counts
            print_line(
                f"{name}: {counts.dead} dead, {counts.waiting} waiting, {counts.active} active, "
                f"{counts.delayed} delayed"
            )


async def retry_dead(
    redis_url: str, queue_names: Sequence[str], job_ids: Sequence[str] | None, print_line: Print
) -> None:
    """Retry the named jobs, or all that are dead."""
    missing = dict.fromkeys(job_ids or ())
    is_any_retried = False
    for name in queue_names:
        async with _open_queue(redis_url, name) as queue:
            wanted = (
                missing
                if job_ids is not None
                else [job.id for job in await queue.list_dead(count_max=JOBS_MAX)]
            )
            for job_id in list(wanted):
                if await queue.retry(job_id):
                    print_line(f"{job_id} is tried again.")
                    missing.pop(job_id, None)
                    is_any_retried = True
    if missing:
        raise JobsError(f"Not among the dead: {', '.join(missing)}.")
    if not is_any_retried:
        print_line("There are no dead jobs.")


def _choose_queues(named: str | None) -> list[str]:
    from adloom.catalog.schedule_sync import QUEUE as BANNERS
    from adloom.pages.crawl.schedule import QUEUE as CRAWLS
    from adloom.runtime.mail.send import QUEUE as MAILS
    from adloom.sync.jobs import QUEUE as SYNC

    known = [BANNERS, SYNC, CRAWLS, MAILS]
    if named is None:
        return known
    if named not in known:
        raise JobsError(f"There is no queue {named!r}. There are {', '.join(known)}.")
    return [named]


@asynccontextmanager
async def _open_queue(redis_url: str, name: str) -> "AsyncGenerator[JobQueue]":
    from adloom.runtime.jobs.queue import open_queue
    from adloom.runtime.valkey import VALKEY_AWAY

    try:
        async with open_queue(name, redis_url) as queue:
            yield queue
    except VALKEY_AWAY as error:
        raise JobsError(f"The queue cannot be read: {describe_error(error)}") from error


def _describe(job: "ListedJob") -> str:
    # An error may have several lines.
    reason = " ".join((job.error or "").split())
    ended_at = job.ended_at or job.put_at
    return f"{job.id}  {job.name}  {ended_at:%Y-%m-%dT%H:%M:%SZ}  {job.attempts} attempts  {reason}"
