"""The worker: keeps the projections up with the ledger, runs the jobs, and says that it does."""

import asyncio
from http import HTTPStatus

import msgspec

from adloom.catalog import schedule_sync
from adloom.catalog.changes import Catalog
from adloom.catalog.schedule_sync import SYNC_SCHEDULE_STATUS, ScheduleSync, sync_job
from adloom.core.clock import SystemClock
from adloom.entrypoints.listeners import inherited_socket
from adloom.entrypoints.process import run_process
from adloom.ledger.projection import Projection
from adloom.ledger.store import EVENT_TABLES, EventTables, all_cursors
from adloom.ledger.stream import ValkeyLedger
from adloom.ledger.upkeep import Upkeep
from adloom.runtime.http.plain import PlainAnswer, PlainApp
from adloom.runtime.http.server import serve
from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.schedule import CronSchedule
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.metrics import Metrics
from adloom.runtime.postgres import open_pool
from adloom.runtime.settings import WorkerSettings, worker_settings
from adloom.runtime.valkey import open_valkey

POOL_SIZE_MAX = 4
DRAIN_SECONDS_MAX = 1
# For the batch under way; one that takes longer is cut off, and comes again at the next start.
STOP_SECONDS_MAX = 2.0


class Health(msgspec.Struct, frozen=True):
    """What monitors of workers read."""

    status: str
    queue: str
    uptime: float


def main() -> None:
    """Run until told to stop."""
    run_process(worker_settings, work)


async def work(settings: WorkerSettings, metrics: Metrics) -> None:
    """Follow the ledger and run jobs until a signal asks to stop."""
    clock = SystemClock()
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE_MAX) as pool,
        open_valkey(settings.services.redis_url) as valkey,
        open_queue(schedule_sync.QUEUE, settings.services.redis_url) as queue,
    ):
        ledger = ValkeyLedger(valkey)
        projection = Projection(EVENT_TABLES, ledger, EventTables(pool))
        upkeep = Upkeep(ledger, lambda: all_cursors(pool), clock=clock)
        _register(metrics, projection, upkeep)
        sync = ScheduleSync(Catalog(pool, valkey, clock=clock), clock)
        schedule = CronSchedule(sync_job(settings.schedule_sync_cron), queue, clock=clock)
        jobs = JobWorker(queue.name, settings.services.redis_url, {SYNC_SCHEDULE_STATUS: sync.handle})
        _register_jobs(metrics, queue, jobs, sync)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            runs = [projection.run, upkeep.run, schedule.run, jobs.run]
            tasks = [group.create_task(run(stop)) for run in runs]
            await _answer_health(settings)
            stop.set()
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS_MAX)
            for task in late:
                task.cancel()


async def _answer_health(settings: WorkerSettings) -> None:
    """Answer who asks how we are, until a signal asks to stop."""
    clock = asyncio.get_running_loop().time
    started_at = clock()

    async def health() -> PlainAnswer:
        uptime = round(clock() - started_at, 3)
        return PlainAnswer(HTTPStatus.OK, msgspec.json.encode(Health("ok", "stats-sync", uptime)))

    async def alive() -> PlainAnswer:
        return PlainAnswer(HTTPStatus.OK, b'{"status":"ok"}')

    app = PlainApp({"/health": health, "/health/live": alive})
    listener = inherited_socket(settings.host, settings.port)
    await serve(app, listener, drain_seconds_max=DRAIN_SECONDS_MAX)


def _register(metrics: Metrics, projection: Projection, upkeep: Upkeep) -> None:
    metrics.counters(
        "adloom_projection_events",
        "Events by what the projection did with them.",
        "outcome",
        lambda: {
            "counted": projection.counted,
            "repeated": projection.repeated,
            "dropped": projection.dropped,
            "dead": projection.dead,
        },
    )
    metrics.counter("adloom_projection_batches", "Batches folded.", lambda: projection.batches)
    metrics.counter("adloom_projection_failures", "Tries that had to wait.", lambda: projection.failures)
    metrics.gauge("adloom_ledger_lag_entries", "Entries not yet read.", lambda: upkeep.lag.entries)
    metrics.gauge(
        "adloom_ledger_lag_seconds", "Age of the oldest entry not yet read.", lambda: upkeep.lag.seconds
    )
    metrics.counter("adloom_ledger_trimmed", "Old entries forgotten.", lambda: upkeep.trimmed)


def _register_jobs(metrics: Metrics, queue: JobQueue, jobs: JobWorker, sync: ScheduleSync) -> None:
    metrics.counters(
        "adloom_jobs",
        "Jobs by how an attempt ended: done, failed, buried without attempts left, back from a lost process.",
        "outcome",
        lambda: {"done": jobs.done, "failed": jobs.failed, "dead": jobs.dead, "lost": jobs.lost},
    )
    metrics.counter("adloom_job_errors", "Times the queue could not be read.", lambda: jobs.errors)
    metrics.gauges(
        "adloom_job_queue_depth",
        "Jobs in the queue by where they are, as of the last one that was put.",
        "state",
        lambda: msgspec.structs.asdict(queue.counts),
    )
    metrics.counter("adloom_schedule_moves", "Statuses moved by the clock.", lambda: sync.moved)


if __name__ == "__main__":
    main()
