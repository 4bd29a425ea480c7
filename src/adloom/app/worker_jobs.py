"""The jobs of a worker: what puts them when their time has come, and what runs them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeAlias

from adloom.app.metrics.worker import register_jobs, register_rollup
from adloom.app.worker_sync import SyncParts
from adloom.catalog.schedule_sync import SYNC_SCHEDULE_STATUS, ScheduleSync, sync_job
from adloom.core.clock import Clock
from adloom.resource.changes import Catalog
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.jobs.schedule import CronSchedule
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import WorkerSettings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey
from adloom.stats.rollup import ROLLUP_STATS, Rollup, StaleDays, rollup_job

Run: TypeAlias = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


class JobDependencies(NamedTuple):
    """What jobs work with."""

    pool: Pool
    valkey: Valkey
    queue: JobQueue
    clock: Clock
    stats: SyncParts


def job_runs(settings: WorkerSettings, metrics: Metrics, around: JobDependencies) -> list[Run]:
    """Make what runs until told to stop."""
    pool, valkey, queue, clock, stats = around
    sync = ScheduleSync(Catalog(pool, valkey, clock=clock), clock)
    stale = StaleDays(pool, queue, settings.stats_rollup_cron, clock)
    rollup = Rollup(pool, clock, then=stale.look)
    jobs = JobWorker(
        queue.name,
        settings.services.redis_url,
        {SYNC_SCHEDULE_STATUS: sync.handle, ROLLUP_STATS: rollup.handle, **stats.handlers},
    )
    register_jobs(metrics, queue, jobs, sync)
    register_rollup(metrics, rollup, stale)
    schedules = [
        CronSchedule(job, queue, clock=clock)
        for job in (
            sync_job(settings.schedule_sync_cron),
            rollup_job(settings.stats_rollup_cron),
            stats.cron_job,
        )
    ]
    return [*(schedule.run for schedule in schedules), stale.run, jobs.run, stats.worker.run]
