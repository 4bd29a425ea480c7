"""The commands about jobs: `adloom jobs …`."""

# ruff: noqa: PLC0415 - as in cli.py, a command imports what it needs when it runs

import asyncio
import os
from typing import Annotated

import typer

from adloom.cli.options import DataDir, data_directory

app = typer.Typer(
    name="jobs",
    help="Look at jobs that failed, and try them again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

QueueName = Annotated[str, typer.Option("--queue", help="The queue.")]


@app.command("list")
def list_jobs(*, queue: QueueName = "banners", data_dir: DataDir = None) -> None:
    """List the jobs that ran out of attempts, the last first, and count the others."""
    from adloom.cli import dead_jobs as command
    from adloom.runtime.embedded.servers import find_redis_url

    redis_url = find_redis_url(os.environ, data_directory(data_dir))
    asyncio.run(command.list_dead(redis_url, queue, typer.echo))


@app.command()
def retry(
    job_ids: Annotated[list[str] | None, typer.Argument(help="Ids of dead jobs.", show_default=False)] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that are dead.")] = False,
    queue: QueueName = "banners",
    data_dir: DataDir = None,
) -> None:
    """Put dead jobs back into their queue, with all their attempts."""
    from adloom.cli import dead_jobs as command
    from adloom.runtime.embedded.servers import find_redis_url

    if bool(job_ids) == every:
        raise command.JobsError("Name the jobs, or --all; `adloom jobs list` tells which are dead.")
    redis_url = find_redis_url(os.environ, data_directory(data_dir))
    asyncio.run(command.retry_dead(redis_url, queue, job_ids or None, typer.echo))
