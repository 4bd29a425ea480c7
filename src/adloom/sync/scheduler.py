"""Enqueues sync jobs on a schedule: for each eligible seller, one per level; and how old the figures of sellers are.

Platforms restate their figures for some days, so a job covers today and some days before, in the account's time zone.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Connection, Pool
from adloom.sync.jobs import Origin, SyncJob, build_jobs
from adloom.sync.pipeline import store

# An active account with valid credentials and a campaign that is active or paused.
_ELIGIBLE: Final = """
      FROM sync.ad_accounts AS account
      JOIN advertisers AS seller ON seller.id = account.advertiser_id AND seller.deleted_at IS NULL
     WHERE account.is_active AND account.deleted_at IS NULL AND account.credentials_expired_at IS NULL
       AND EXISTS (
            SELECT FROM sync.campaigns
             WHERE ad_account_id = account.id AND status IN ('ACTIVE', 'PAUSED') AND deleted_at IS NULL
       )
"""
ELIGIBLE: Final = f"""
    SELECT seller.public_id AS seller_id, array_agg(DISTINCT account.timezone) AS timezones
    {_ELIGIBLE}
     GROUP BY seller.public_id
     ORDER BY seller.public_id
"""
# A seller that was never synced is as old as its account.
AGES: Final = f"""
    WITH eligible AS (
        SELECT seller.public_id AS seller_id, min(account.created_at) AS since {_ELIGIBLE} GROUP BY 1
    ), fresh AS (
        SELECT seller_id, CASE WHEN count(synced_at) < 3 THEN since ELSE min(synced_at) END AS synced_at
          FROM eligible LEFT JOIN sync.freshness USING (seller_id)
         GROUP BY seller_id, since
    ), longest AS (
        SELECT seller_id, synced_at FROM fresh ORDER BY synced_at, seller_id LIMIT $2
    )
    SELECT count(*) AS sellers, max(synced_at) AS newest, count(*) FILTER (WHERE synced_at < $1) AS stale,
           (SELECT array_agg(seller_id ORDER BY synced_at, seller_id) FROM longest) AS seller_ids,
           (SELECT array_agg(synced_at ORDER BY synced_at, seller_id) FROM longest) AS since
      FROM fresh
"""  # noqa: S608 - our own words
SELLERS_NAMED_MAX: Final = 100  # Each is a series of a metric.
EXPIRED: Final = """
    SELECT it.public_id AS account_id, it.name, it.platform, seller.public_id AS seller_id,
           it.credentials_expired_at AS expired_at, it.credentials_problem AS problem
      FROM sync.ad_accounts AS it JOIN advertisers AS seller ON seller.id = it.advertiser_id
     WHERE it.credentials_expired_at IS NOT NULL AND it.is_active AND it.deleted_at IS NULL
       AND seller.deleted_at IS NULL
     ORDER BY it.credentials_expired_at
     LIMIT $1
"""


class EligibleSeller(msgspec.Struct, frozen=True):
    """A seller to sync, and the time zones of its accounts."""

    seller_id: UUID
    timezones: tuple[str, ...]


class SyncAges(msgspec.Struct, frozen=True, kw_only=True):
    """When eligible sellers were last synced on all levels; `longest` names those synced longest ago."""

    sellers: int = 0
    newest: datetime | None = None
    stale: int = 0
    longest: tuple[tuple[UUID, datetime], ...] = ()

    @property
    def oldest(self) -> datetime | None:
        """When the seller that has waited longest was synced."""
        return self.longest[0][1] if self.longest else None

    @property
    def stalest(self) -> list[UUID]:
        """The sellers with stale figures, the stalest first."""
        return [seller_id for seller_id, _ in self.longest[: self.stale]]


class ExpiredAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An ad account whose credentials the platform rejects."""

    account_id: UUID
    name: str
    platform: str
    seller_id: UUID
    expired_at: datetime
    problem: str


async def load_eligible_sellers(pool: Pool) -> list[EligibleSeller]:
    return [EligibleSeller(row["seller_id"], tuple(row["timezones"])) for row in await pool.fetch(ELIGIBLE)]


async def load_ages(connection: "Connection | Pool", *, stale_before: datetime) -> SyncAges:
    row = await connection.fetchrow(AGES, stale_before, SELLERS_NAMED_MAX)
    assert row is not None
    return SyncAges(
        sellers=row["sellers"],
        newest=row["newest"],
        stale=row["stale"],
        longest=tuple(zip(row["seller_ids"] or (), row["since"] or (), strict=True)),
    )


async def load_expired_accounts(connection: "Connection | Pool", *, count_max: int) -> list[ExpiredAccount]:
    """Load the accounts that a user must reconnect."""
    rows = await connection.fetch(EXPIRED, count_max)
    return [msgspec.convert(dict(row), ExpiredAccount) for row in rows]


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
        now = self._clock.now()
        await store.ensure_months(self._pool, [(now + ahead).date() for ahead in AHEAD])
        sellers = await load_eligible_sellers(self._pool)
        jobs: list[SyncJob] = []
        for seller in sellers:
            first, last = choose_days(now, seller.timezones, self._lookback_days)
            jobs += build_jobs(seller.seller_id, first, last, Origin.SCHEDULE)
        put = await self._queue.put(jobs)
        await self._queue.refresh_counts()
        self.put += put
        self.ages = await load_ages(self._pool, stale_before=now - STALE_AFTER)
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
