"""A worker of jobs, for the time of a test."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from adloom.runtime.jobs.worker import Handler, JobWorker


@contextlib.asynccontextmanager
async def working(
    queue: str, redis_url: str, handler: Handler, **options: float
) -> AsyncGenerator[JobWorker]:
    """Run a worker that has one kind of jobs, `work`."""
    worker = JobWorker(queue, redis_url, {"work": handler}, **options)  # pyright: ignore[reportArgumentType] - seconds only
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()
