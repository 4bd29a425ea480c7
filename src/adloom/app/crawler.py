"""The crawler: runs the crawls of sites, by hand and by the clock."""

import os
from typing import Final

from adloom.app.health import answer_health, run_until_stopped, wait_until_lasting
from adloom.app.process import RenewalError, run_process
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.crawl.jobs import CrawlRunner, make_worker
from adloom.pages.crawl.robots import name_robot
from adloom.pages.crawl.schedule import QUEUE, CrawlSchedule, open_crawl_queue
from adloom.pages.crawl.visit import PageReader, VisitParts
from adloom.pages.verification.verify import RECHECK_SITES, VerificationRecheck, recheck_job
from adloom.resource.changes import Catalog
from adloom.runtime.background_settings import CrawlerSettings, read_crawler_settings
from adloom.runtime.jobs.schedule import CronSchedule
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.postgres import open_pool
from adloom.runtime.process.tuning import freeze_startup_objects
from adloom.runtime.supervisor.liveness_pipe import is_supervised
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, mask_settings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import open_valkey

# Beside the connection that each crawl holds for its lock.
POOL_SIZE: Final = 6
COLLECTED_AFTER: Final = 5_000


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
        health = answer_health(settings.host, settings.port, QUEUE, pool=pool, valkey=valkey)
        # The text extractor takes 25 MB and stays loaded. Without a supervisor the process would not be restarted.
        may_end = is_supervised(os.environ)
        idle = wait_until_lasting(lambda: may_end and reader.is_loaded and not worker.running)
        try:
            if await run_until_stopped(runs, health, idle):
                raise RenewalError
        finally:
            reader.close()


def _register(metrics: Metrics, runner: CrawlRunner, schedule: CrawlSchedule, worker: JobWorker) -> None:
    metrics.add_gauge("adloom_crawls_running", "Sites that are crawled now.", lambda: runner.running)
    metrics.add_counters("adloom_crawls", "Crawls by how they ended.", "state", lambda: dict(runner.ended))
    metrics.add_counters(
        "adloom_crawl_pages", "Addresses by what came of them.", "state", lambda: dict(runner.pages)
    )
    metrics.add_counter(
        "adloom_crawls_scheduled", "Crawls that the clock has started.", lambda: schedule.started
    )
    metrics.add_counter(
        "adloom_crawls_lost", "Crawls that came back from a lost process.", lambda: worker.lost
    )


def _register_verification(metrics: Metrics, recheck: VerificationRecheck) -> None:
    metrics.add_counter(
        "adloom_sites_rechecked", "Sites whose file was looked at again.", lambda: recheck.checked
    )
    metrics.add_counter(
        "adloom_verifications_withdrawn", "Sites that are not proven any more.", lambda: recheck.withdrawn
    )


if __name__ == "__main__":
    main()
