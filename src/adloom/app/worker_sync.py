"""Stats sync in a worker: what puts its jobs when their time has come, and what does them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from adloom.app.metrics.sync import register_sync
from adloom.core.clock import Clock
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import Handler, JobWorker
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import WorkerSettings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.sync.jobs import CONCURRENCY, QUEUE, SYNC_STATS
from adloom.sync.processor import SyncProcessor, backoff
from adloom.sync.providers.http_client import open_http_client
from adloom.sync.providers.meta import META_URL, MetaProvider
from adloom.sync.providers.mock import MockProvider
from adloom.sync.providers.own import OwnProvider
from adloom.sync.queue import open_stats_queue
from adloom.sync.scheduler import SCHEDULE_STATS, SyncScheduler, schedule_job
from adloom.sync.words import Platform


class SyncParts(msgspec.Struct, frozen=True):
    """The job that the clock starts, who does it, and who does the jobs that it puts."""

    cron_job: CronJob
    handlers: dict[str, Handler]
    worker: JobWorker


@asynccontextmanager
async def open_sync(
    settings: WorkerSettings, metrics: Metrics, pool: Pool, clock: Clock
) -> AsyncGenerator[SyncParts]:
    """Put stats sync together."""
    redis_url = settings.services.redis_url
    async with open_stats_queue(redis_url) as queue, open_http_client() as http:
        providers = {
            Platform.MOCK: MockProvider(),
            Platform.META: MetaProvider(http, url=settings.meta_url or META_URL),
            Platform.ADLOOM: OwnProvider(pool),
        }
        sealer = SecretCipher(settings.sealing_secrets) if settings.sealing_secrets else None
        processor = SyncProcessor(pool, providers, clock=clock, sealer=sealer)
        scheduler = SyncScheduler(pool, queue, clock, lookback_days=settings.sync_lookback_days)
        worker = JobWorker(
            QUEUE, redis_url, {SYNC_STATS: processor.handle}, concurrency=CONCURRENCY, backoff=backoff
        )
        register_sync(metrics, processor.tally, scheduler, queue=queue, worker=worker, clock=clock)
        yield SyncParts(schedule_job(settings.sync_cron), {SCHEDULE_STATS: scheduler.handle}, worker)
