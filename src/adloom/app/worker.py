"""The worker: runs projections, actors and jobs, and sends heartbeats."""

import socket
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec

from adloom.app.actors.compose import Run, WorkerActors, WorkerParts, compose_actors, make_link
from adloom.app.health import answer_health, run_until_stopped
from adloom.app.metrics.stats_sync import register_sync
from adloom.app.metrics.worker import (
    register_days,
    register_jobs,
    register_learning,
    register_ledger,
    register_ledger_comparison,
    register_mail,
    register_money_retention,
    register_projections,
    register_rollup,
)
from adloom.app.process import run_process
from adloom.budgets.bids.nets import read_fleet_weights
from adloom.budgets.confirms.projection import CHARGES
from adloom.budgets.money.comparison import LedgerCheck
from adloom.budgets.money.retention import MoneyRetention
from adloom.budgets.worker import WorkerIdentity
from adloom.catalog import schedule_sync
from adloom.catalog.asset.cleaning import CLEAN_ASSETS, AssetCleaning, make_asset_cleaning_job
from adloom.catalog.schedule_sync import SYNC_SCHEDULE_STATUS, ScheduleSync, sync_job
from adloom.core.clock import Clock, SystemClock
from adloom.core.currency import Currency
from adloom.core.ids import SystemIds
from adloom.events.conversions.attribute import build_rules
from adloom.events.ctr.publish import ModelPublisher
from adloom.events.ctr.store import LEARNING, LearningStore
from adloom.events.ctr.trainer import Trainer
from adloom.events.erasure import ErasedEntries
from adloom.events.log.stream import Lag, ValkeyEventLog
from adloom.events.projections.projection import Projection
from adloom.events.projections.retention import LogRetention
from adloom.events.tables.partition_store import AUCTION_PARTITIONS, PartitionStore
from adloom.events.tables.partitions import PartitionMaintenance, RetentionPeriods
from adloom.events.topics.publish import TopicTrimmer
from adloom.identity.link.mail import MAIL_LINK, LinkMailer
from adloom.ops.projections import build_projections, list_projections, read_cursors
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.cleaning import CLEAN_PAGES, PageCleaning, make_cleaning_job
from adloom.pages.reclassify.job import CLASSIFY_AGAIN, Reclassification, make_reclassify_job
from adloom.resource.changes import Catalog
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.files.place import open_files
from adloom.runtime.files.store import FileStore
from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.schedule import CronJob, CronSchedule
from adloom.runtime.jobs.worker import Handler, JobWorker
from adloom.runtime.locks import HeldLocks
from adloom.runtime.mail.send import QUEUE as MAIL_QUEUE
from adloom.runtime.mail.send import open_mail_queue
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.process.roles import WorkerRole
from adloom.runtime.process.tuning import BATCH_THRESHOLD, freeze_startup_objects
from adloom.runtime.settings import Telemetry, WorkerSettings, read_worker_settings
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, Reading, mask_settings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.stats.refunds.store import PendingRefunds
from adloom.stats.rollup import ROLLUP_STATS, Rollup, StaleDays, make_rollup_job
from adloom.stats.saved_report.send import (
    FIND_DUE_REPORTS,
    MAIL_REPORT,
    DueReports,
    ReportMailer,
    make_due_reports_job,
)
from adloom.sync.jobs import CONCURRENCY, QUEUE, SYNC_STATS
from adloom.sync.processor import SyncProcessor, choose_backoff
from adloom.sync.providers.http_client import RequestPace, open_http_client
from adloom.sync.providers.meta import META_URL, MetaProvider
from adloom.sync.providers.mock import MockProvider
from adloom.sync.providers.own import OwnProvider
from adloom.sync.queue import open_stats_queue
from adloom.sync.scheduler import SCHEDULE_STATS, SyncScheduler, build_schedule_job
from adloom.sync.words import Platform

# One a projection, three for budget actors, one more.
LEDGER_POOL_SIZE_MAX = 11
# One each for learning, for looking after tables and ledger and for comparing books, five for syncs, the rest for jobs.
POOL_SIZE_MAX = 12
# Of actors that several workers share. One that is frozen in a transaction holds up its successor for so long.
SHARD_POOL_SIZE_MAX = 4
SHARD_TRANSACTION_SECONDS_MAX = 2


class SyncParts(msgspec.Struct, frozen=True):
    """The job that the clock starts, its handler, and the worker of the jobs that it puts."""

    cron_job: CronJob
    handlers: dict[str, Handler]
    worker: JobWorker


def main() -> None:
    run_process(read_worker_settings, work)


async def work(settings: WorkerSettings, metrics: Metrics) -> None:
    """Run projections and jobs until a signal asks to stop."""
    # Batches are thousands of objects without cycles: the collector took a quarter of our time to find that out.
    weights = read_fleet_weights(settings.fleet_weights)
    freeze_startup_objects(BATCH_THRESHOLD)
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE_MAX) as pool,
        open_pool(settings.services.database_url, size_max=LEDGER_POOL_SIZE_MAX) as ledger_pool,
        open_pool(
            settings.services.database_url,
            size_max=SHARD_POOL_SIZE_MAX,
            idle_in_transaction_seconds_max=SHARD_TRANSACTION_SECONDS_MAX,
        ) as shard_pool,
        open_valkey(settings.services.redis_url) as valkey,
        open_queue(schedule_sync.QUEUE, settings.services.redis_url) as queue,
        open_mail_queue(settings.services.redis_url) as mail_queue,
        open_sync(settings, metrics, pool, clock := SystemClock()) as stats,
        open_files(settings.assets_url, clock) as files,
    ):
        worker = WorkerIdentity(_name_consumer(settings.telemetry), SystemIds().make().hex, HeldLocks())
        link = make_link(settings.nats, worker)
        parts = WorkerParts(
            settings, metrics, clock, valkey, pool, ledger_pool, shard_pool, worker, link, weights
        )
        actors = compose_actors(parts)
        books = LedgerCheck(pool, clock, is_leader=actors.budgets.is_leader)
        register_ledger_comparison(metrics, books)
        removing = _remove_old_charges(parts, actors)
        by_role = {
            **_log_runs(parts, actors, [books.run, *removing]),
            WorkerRole.JOBS: _build_job_runs(parts, (queue, mail_queue), stats, files),
        }
        runs = [
            *(run for role in settings.nats.roles for run in by_role[role]),
            *([] if link is None else [link.run]),
            _make_heartbeat(parts, books).run,
        ]
        await run_until_stopped(
            runs, answer_health(settings.host, settings.port, QUEUE, pool=pool, valkey=valkey)
        )


def _make_heartbeat(parts: WorkerParts, books: LedgerCheck) -> HeartbeatPublisher:
    link = parts.link
    return HeartbeatPublisher(
        parts.valkey,
        parts.clock,
        telemetry=parts.settings.telemetry,
        settings=mask_settings(parts.settings),
        read=lambda: Reading(
            shards=None if link is None else link.read_shards(),
            weights_problem=parts.weights.problem,
            books_problem=books.problem,
        ),
    )


def _remove_old_charges(parts: WorkerParts, actors: WorkerActors) -> list[Run]:
    kept_days, is_leader = parts.settings.money_retention_days, actors.budgets.is_leader
    retention = (
        None
        if kept_days is None
        else MoneyRetention(parts.pool, parts.clock, kept_days=kept_days, is_leader=is_leader)
    )
    register_money_retention(parts.metrics, retention)
    return [] if retention is None else [retention.run]


def _log_runs(parts: WorkerParts, actors: WorkerActors, money: Sequence[Run]) -> dict[WorkerRole, list[Run]]:
    """Compose the projections, the retention of their data, and what runs the actors."""
    settings, metrics, clock, valkey, pool, ledger_pool, _, worker, _, _ = parts
    listed = list_projections(
        ledger_pool,
        valkey,
        topic_entries_max=settings.topic_entries_max,
        auction_days=settings.auction_retention_days,
        learning_wait_seconds=settings.learning_wait_seconds,
        budget_actors=actors.budgets,
        attribution=build_rules(settings.conversions.days, settings.conversions.currency),
    )
    projections = build_projections(
        listed, valkey, consumer=worker.consumer, incarnation=worker.incarnation, held_locks=worker.held_locks
    )
    ledger = ValkeyEventLog(valkey)
    log_retention = LogRetention(
        ledger,
        lambda: read_cursors(listed, pool),
        clock=clock,
        retention=timedelta(days=settings.ledger_retention_days),
        sweep=ErasedEntries(pool, valkey).sweep,
        spare=TopicTrimmer(valkey).trim,
    )
    retention = RetentionPeriods(
        event_days=settings.event_retention_days, ledger_days=settings.ledger_retention_days
    )
    days = PartitionMaintenance(PartitionStore(pool), ledger, clock=clock, retention=retention)
    auction_days = PartitionMaintenance(
        PartitionStore(pool, AUCTION_PARTITIONS),
        ledger,
        clock=clock,
        retention=msgspec.structs.replace(retention, event_days=settings.auction_retention_days),
    )
    register_projections(metrics, projections)
    register_ledger(metrics, log_retention)
    register_days(metrics, days, of="event", what="the event tables")
    register_days(metrics, auction_days, of="auction", what="recorded auctions")
    trainer = _make_trainer(
        pool, valkey, clock, projections=projections, wait_seconds=settings.learning_wait_seconds
    )
    register_learning(metrics, trainer)
    return {
        WorkerRole.ENTITY: [*actors.beside],
        WorkerRole.SINGLETON: [
            # Only the leader may own charges.
            *(one.run for one in projections if one.name == CHARGES),
            *actors.leading,
            PendingRefunds(pool, valkey, clock).run,
            *money,
        ],
        WorkerRole.PROJECTIONS: [
            *(one.run for one in projections if one.name != CHARGES),
            log_retention.run,
            days.run,
            auction_days.run,
            trainer.run,
        ],
    }


def _make_trainer(
    pool: Pool, valkey: Valkey, clock: Clock, *, projections: Iterable[Projection], wait_seconds: int
) -> Trainer:
    """Make the trainer; it learns while this worker runs the projection that it learns from."""
    [projection] = [one for one in projections if one.name == LEARNING]
    ledger = ValkeyEventLog(valkey)

    async def measure_lag(cursor: str) -> Lag:
        return await ledger.measure_lag(LEARNING, cursor)

    return Trainer(
        LearningStore(pool),
        ModelPublisher(valkey),
        clock,
        wait=timedelta(seconds=wait_seconds),
        is_owner=lambda: projection.is_owner,
        lag=measure_lag,
    )


def _name_consumer(telemetry: Telemetry) -> str:
    """Name this worker; after a restart it has the same name and finds its own entries."""
    return f"{telemetry.process}@{socket.gethostname()}"


def _build_job_runs(
    parts: WorkerParts, queues: tuple[JobQueue, JobQueue], stats: SyncParts, files: FileStore
) -> list[Run]:
    """Compose the job worker and the schedules that put its jobs."""
    settings, metrics, clock, valkey, pool = parts[:5]
    queue, mail_queue = queues
    sync = ScheduleSync(Catalog(pool, valkey, clock=clock), clock)
    stale = StaleDays(pool, queue, settings.stats_rollup_cron, clock)
    rollup = Rollup(pool, clock, then=stale.check)
    jobs = JobWorker(
        queue.name,
        settings.services.redis_url,
        {
            SYNC_SCHEDULE_STATUS: sync.handle,
            ROLLUP_STATS: rollup.handle,
            CLEAN_PAGES: PageCleaning(pool, valkey, clock).handle,
            CLEAN_ASSETS: AssetCleaning(pool, files, clock, unused_days=settings.assets.unused_days).handle,
            CLASSIFY_AGAIN: Reclassification(pool, ClassifyQueue(valkey), clock).handle,
            FIND_DUE_REPORTS: DueReports(pool, mail_queue, settings.mail, clock).handle,
            **stats.handlers,
        },
    )
    register_jobs(metrics, queue, jobs, sync)
    register_rollup(metrics, rollup, stale)
    schedules = [
        CronSchedule(job, queue, clock=clock)
        for job in (
            sync_job(settings.schedule_sync_cron),
            make_rollup_job(settings.stats_rollup_cron),
            make_cleaning_job(),
            make_asset_cleaning_job(),
            make_reclassify_job(),
            make_due_reports_job(),
            stats.cron_job,
        )
    ]
    links = LinkMailer(pool, settings.mail, clock, public_url=settings.control_url)
    reports = ReportMailer(
        pool,
        settings.mail,
        clock,
        public_url=settings.control_url,
        currency=Currency(settings.conversions.currency or ""),
        counts_unbound=settings.unbound_events == "count",
    )
    handlers = {MAIL_LINK: links.handle, MAIL_REPORT: reports.handle}
    mails = JobWorker(MAIL_QUEUE, settings.services.redis_url, handlers)
    register_mail(metrics, (links, reports))
    return [*(schedule.run for schedule in schedules), stale.run, jobs.run, stats.worker.run, mails.run]


@asynccontextmanager
async def open_sync(
    settings: WorkerSettings, metrics: Metrics, pool: Pool, clock: Clock
) -> AsyncGenerator[SyncParts]:
    redis_url = settings.services.redis_url
    async with (
        open_stats_queue(redis_url) as queue,
        open_http_client() as http,
        open_valkey(redis_url) as valkey,
    ):
        providers = {
            Platform.MOCK: MockProvider(),
            Platform.META: MetaProvider(
                http, url=settings.meta_url or META_URL, pace=lambda rate: RequestPace(rate, valkey=valkey)
            ),
            Platform.ADLOOM: OwnProvider(pool, currency=settings.conversions.currency),
        }
        cipher = SecretCipher(settings.sealing_secrets) if settings.sealing_secrets else None
        processor = SyncProcessor(pool, providers, clock=clock, cipher=cipher)
        scheduler = SyncScheduler(pool, queue, clock, lookback_days=settings.sync_lookback_days)
        worker = JobWorker(
            QUEUE,
            redis_url,
            {SYNC_STATS: processor.handle},
            concurrency=CONCURRENCY,
            backoff=choose_backoff,
            is_quiet=True,
        )
        register_sync(metrics, processor.tally, scheduler, queue=queue, worker=worker, clock=clock)
        yield SyncParts(build_schedule_job(settings.sync_cron), {SCHEDULE_STATS: scheduler.handle}, worker)


if __name__ == "__main__":
    main()
