"""Puts a job into a queue whenever a cron expression says so.

Every worker does so: the job's id names the moment, so the queue takes the first and ignores the
others. Due times while no worker ran are made up for once, for the last of them: work that is
started by the clock covers all that is open, not one moment each.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.runtime import loops
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine
from adloom.runtime.valkey import VALKEY_AWAY

RETRY: Final = timedelta(seconds=1)
# The machine may have slept, or its clock may have been set: look at it again after this.
SLEEP_MAX: Final = timedelta(hours=1)

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Pause = Callable[[timedelta, asyncio.Event], Awaitable[None]]


class JobSink(Protocol):
    """Where jobs are put."""

    async def put(self, name: str, *, job_id: str) -> None:
        """Put a job, unless one with this id was put before."""


async def pause(length: timedelta, stop: asyncio.Event) -> None:
    """Wait, but not longer than until stopped."""
    await loops.pause(length.total_seconds(), stop)


class CronJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the clock starts; its id must name the moment."""

    name: str
    cron: Cron
    job_id: Callable[[datetime], str]


class CronSchedule:
    """Starts one job by the clock."""

    def __init__(self, job: CronJob, queue: JobSink, *, clock: Clock, pause: Pause = pause) -> None:
        self._job = job
        self._queue = queue
        self._clock = clock
        self._pause = pause
        self._log_failure = RepeatedLine(log, "job_not_put", seconds=OUTAGE_SECONDS)

    async def run(self, stop: asyncio.Event) -> None:
        """Put the job that came due last, then each as it comes due, until stopped."""
        due = self._job.cron.find_latest_until(self._clock.now())
        while not stop.is_set():
            if self._clock.now() < due:
                await self._pause(min(due - self._clock.now(), SLEEP_MAX), stop)
                continue
            # After a long sleep several are due: one of them does the work of all.
            due = self._job.cron.find_latest_until(self._clock.now())
            try:
                await self._queue.put(self._job.name, job_id=self._job.job_id(due))
            except VALKEY_AWAY as error:
                self._log_failure(job=self._job.name, error=repr(error))
                await self._pause(RETRY, stop)
                continue
            due = self._job.cron.find_next_after(due)
