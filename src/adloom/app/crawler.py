"""The crawler: runs the crawls of sites, by hand and by the clock."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from adloom.app.health import answer_health
from adloom.app.process import run_process
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.crawl.jobs import CrawlRunner, make_worker
from adloom.pages.crawl.queue import QUEUE, open_crawl_queue
from adloom.pages.crawl.robots import name_robot
from adloom.pages.crawl.schedule import CrawlSchedule
from adloom.pages.crawl.visit import PageReader, VisitParts
from adloom.pages.verification.verify import RECHECK_SITES, VerificationRecheck, recheck_job
from adloom.resource.changes import Catalog
from adloom.runtime.background_settings import CrawlerSettings, read_crawler_settings
from adloom.runtime.jobs.schedule import CronSchedule
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.process.tuning import freeze_startup_objects
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, mask_settings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey, open_valkey

# Beside the connection that each crawl holds for its lock.
POOL_SIZE: Final = 6
STOP_SECONDS_MAX: Final = 2.0
COLLECTED_AFTER: Final = 5_000

Run = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


def main() -> None:
    run_process(read_crawler_settings, crawl)


async def crawl(settings: CrawlerSettings, metrics: Metrics) -> None:
    """Run crawls until a signal asks to stop; those under way go on at the next start."""
    freeze_startup_objects(COLLECTED_AFTER)
    clock, redis_url = SystemClock(), settings.services.redis_url
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE + settings.sites_at_once) as pool,
        open_valkey(redis_url) as valkey,
        open_crawl_queue(redis_url) as queue,
        open_outbound(settings.outbound) as client,
    ):
        reader = PageReader()
        parts = VisitParts(
            pool=pool,
            client=client,
            queue=ClassifyQueue(valkey),
            reader=reader,
            clock=clock,
            robot=name_robot(settings.outbound.user_agent),
            fresh_hours=settings.page_fresh_hours,
            delay_seconds=settings.delay_milliseconds / 1000,
        )
        runner = CrawlRunner(parts, queue, valkey)
        schedule = CrawlSchedule(pool, queue, clock, SystemIds())
        recheck = VerificationRecheck(Catalog(pool, valkey, clock=clock), client, clock)
        handlers = {**runner.handlers, RECHECK_SITES: recheck.handle}
        worker = make_worker(handlers, redis_url, sites_at_once=settings.sites_at_once)
        _register(metrics, runner, schedule, worker)
        _register_verification(metrics, recheck)
        heartbeat = HeartbeatPublisher(
            valkey, clock, telemetry=settings.telemetry, settings=mask_settings(settings)
        )
        rechecks = CronSchedule(recheck_job(), queue, clock=clock)
        runs = [runner.run, schedule.run, rechecks.run, worker.run, heartbeat.run]
        try:
            await _run_until_stopped(settings, runs, pool, valkey)
        finally:
            reader.close()


async def _run_until_stopped(
    settings: CrawlerSettings, runs: Sequence[Run], pool: Pool, valkey: Valkey
) -> None:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(stop)) for run in runs]
        await answer_health(settings.host, settings.port, QUEUE, pool=pool, valkey=valkey)
        stop.set()
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS_MAX)
        for task in late:
            task.cancel()


def _register(metrics: Metrics, runner: CrawlRunner, schedule: CrawlSchedule, worker: JobWorker) -> None:
    metrics.gauge("adloom_crawls_running", "Sites that are crawled now.", lambda: runner.running)
    metrics.counters("adloom_crawls", "Crawls by how they ended.", "state", lambda: dict(runner.ended))
    metrics.counters(
        "adloom_crawl_pages", "Addresses by what came of them.", "state", lambda: dict(runner.pages)
    )
    metrics.counter("adloom_crawls_scheduled", "Crawls that the clock has started.", lambda: schedule.started)
    metrics.counter("adloom_crawls_lost", "Crawls that came back from a lost process.", lambda: worker.lost)


def _register_verification(metrics: Metrics, recheck: VerificationRecheck) -> None:
    metrics.counter(
        "adloom_sites_rechecked", "Sites whose file was looked at again.", lambda: recheck.checked
    )
    metrics.counter(
        "adloom_verifications_withdrawn", "Sites that are not proven any more.", lambda: recheck.withdrawn
    )


if __name__ == "__main__":
    main()
