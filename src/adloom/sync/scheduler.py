"""Puts the jobs of stats sync by the clock: for each seller that can be synced, one a level.

Platforms restate what they have said for some days, so that a job covers today and some days before, each day being
that of the account's own zone.
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
# More than the longest look-back is short: the months that jobs will need are there before them.
AHEAD: Final = (timedelta(), timedelta(days=31), timedelta(days=62))

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SyncQueue(Protocol):
    """Where the jobs of stats sync are put."""

    async def put(self, jobs: Sequence[SyncJob]) -> int:
        """Put the jobs that neither wait nor run, and tell how many those are."""
        ...

    async def refresh_counts(self) -> None:
        """Count the jobs anew."""
        ...


def build_schedule_job(cron: Cron) -> CronJob:
    """Describe the job that the clock starts; its id names the moment, so that one worker of several does it."""
    return CronJob(name=SCHEDULE_STATS, cron=cron, job_id=lambda due: f"{JOB_ID_PREFIX}{due:%Y-%m-%dT%H-%M}")


class SyncScheduler:
    """Puts the jobs of all sellers whenever the clock says so."""

    def __init__(self, pool: Pool, queue: SyncQueue, clock: Clock, *, lookback_days: int) -> None:
        self._pool = pool
        self._queue = queue
        self._clock = clock
        self._lookback_days = lookback_days
        # Plain figures, read by a collector, as of the last time.
        self.ages = SyncAges()
        self.put = 0

    async def handle(self, _job: JobAttempt) -> None:
        """Put the jobs of this time, all of them before anybody waits for the first."""
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
    """Tell the days that cover today and some before, in every zone."""
    todays = [find_today(timezone, now) for timezone in timezones]
    return min(todays) - timedelta(days=lookback_days), max(todays)


def find_today(timezone: str, now: datetime) -> date:
    """Tell which day it is somewhere; where a zone is no longer known, in UTC."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        zone = UTC
    return now.astimezone(zone).date()
