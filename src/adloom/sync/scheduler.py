"""Enqueues sync jobs on a schedule: for each eligible seller, one per level.

Platforms restate their figures for some days, so a job covers today and some days before, in the account's time zone.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import structlog

from adloom.core.clock import Clock
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Pool
from adloom.sync import scheduler_store
from adloom.sync.jobs import Origin, SyncJob, build_jobs
from adloom.sync.pipeline import store
from adloom.sync.scheduler_store import SyncAges

SCHEDULE_STATS: Final = "stats.schedule"
JOB_ID_PREFIX: Final = "stats-schedule-"
STALE_AFTER: Final = timedelta(hours=1)
# Longer than any look-back, so that the partitions exist before a job needs them.
AHEAD: Final = (timedelta(), timedelta(days=31), timedelta(days=62))

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SyncQueue(Protocol):
    """The queue of sync jobs."""

    async def put(self, jobs: Sequence[SyncJob]) -> int:
        """Enqueue the jobs that are neither waiting nor running; return their number."""
        ...

    async def refresh_counts(self) -> None: ...


def build_schedule_job(cron: Cron) -> CronJob:
    """Build the cron job; its id contains the due time, so that only one of several workers runs it."""
    return CronJob(name=SCHEDULE_STATS, cron=cron, job_id=lambda due: f"{JOB_ID_PREFIX}{due:%Y-%m-%dT%H-%M}")


class SyncScheduler:
    """Enqueues the jobs of all sellers when the schedule is due."""

    def __init__(self, pool: Pool, queue: SyncQueue, clock: Clock, *, lookback_days: int) -> None:
        self._pool = pool
        self._queue = queue
        self._clock = clock
        self._lookback_days = lookback_days
        # Metrics as of the last run.
        self.ages = SyncAges()
        self.put = 0

    async def handle(self, _job: JobAttempt) -> None:
        """Enqueue all jobs of this run at once."""
        now = self._clock.now()
        await store.ensure_months(self._pool, [(now + ahead).date() for ahead in AHEAD])
        sellers = await scheduler_store.load_eligible_sellers(self._pool)
        jobs: list[SyncJob] = []
        for seller in sellers:
            first, last = choose_days(now, seller.timezones, self._lookback_days)
            jobs += build_jobs(seller.seller_id, first, last, Origin.SCHEDULE)
        put = await self._queue.put(jobs)
        await self._queue.refresh_counts()
        self.put += put
        self.ages = await scheduler_store.load_ages(self._pool, stale_before=now - STALE_AFTER)
        log.info("stats_sync_scheduled", sellers=len(sellers), jobs=len(jobs), put=put)


def choose_days(now: datetime, timezones: Iterable[str], lookback_days: int) -> tuple[date, date]:
    """Return the first and last day that cover today and the look-back in every zone."""
    todays = [find_today(timezone, now) for timezone in timezones]
    return min(todays) - timedelta(days=lookback_days), max(todays)


def find_today(timezone: str, now: datetime) -> date:
    """Return the local date; UTC if the zone is no longer known."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        zone = UTC
    return now.astimezone(zone).date()
