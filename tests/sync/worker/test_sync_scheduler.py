"""Which sellers are synced on schedule, for which days, and the age of their figures."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import Origin, SyncJob
from adloom.sync.scheduler import SCHEDULE_STATS, SyncScheduler, build_schedule_job, choose_days
from adloom.sync.words import Level
from tests.sync.shop import DAY, NOW, a_job, a_processor, a_seller

TICK = JobAttempt(name=SCHEDULE_STATS, id="tick", data={}, attempt=1)


class FakeQueue:
    """Accepts every job."""

    def __init__(self) -> None:
        self.jobs: list[SyncJob] = []

    async def put(self, jobs: Sequence[SyncJob]) -> int:
        self.jobs += jobs
        return len(jobs)

    async def refresh_counts(self) -> None:
        pass


def a_scheduler(pool: Pool, queue: FakeQueue, **given: Any) -> SyncScheduler:
    return SyncScheduler(pool, queue, given.pop("clock", ManualClock(NOW)), **({"lookback_days": 3} | given))


async def test_an_eligible_seller_has_one_job_per_level_for_today_and_recent_days(pool: Pool) -> None:
    seller = await a_seller(pool)
    queue = FakeQueue()

    await a_scheduler(pool, queue).handle(TICK)

    first = DAY - timedelta(days=3)
    assert queue.jobs == [
        a_job(seller, level, date_from=first, date_to=DAY, origin=Origin.SCHEDULE) for level in Level
    ]


@pytest.mark.parametrize(
    ("account", "campaign"),
    [
        ({"is_active": False}, {}),
        ({"deleted_at": NOW}, {}),
        ({"credentials_expired_at": NOW, "credentials_problem": "expired"}, {}),
        ({}, {"status": "ARCHIVED"}),
        ({}, {"deleted_at": NOW}),
    ],
)
async def test_a_seller_that_is_not_eligible_is_left_out(
    pool: Pool, account: dict[str, Any], campaign: dict[str, Any]
) -> None:
    await a_seller(pool, account=account, campaign=campaign)
    queue = FakeQueue()

    await a_scheduler(pool, queue).handle(TICK)

    assert queue.jobs == []


async def test_a_seller_whose_campaigns_are_all_paused_is_synced(pool: Pool) -> None:
    await a_seller(pool, campaign={"status": "PAUSED"})
    queue = FakeQueue()

    await a_scheduler(pool, queue).handle(TICK)

    assert len(queue.jobs) == 3


async def test_an_advertiser_that_is_deleted_is_left_out(pool: Pool) -> None:
    await a_seller(pool)
    await pool.execute("UPDATE advertisers SET deleted_at = now()")
    queue = FakeQueue()

    await a_scheduler(pool, queue).handle(TICK)

    assert queue.jobs == []


def test_scheduled_days_are_in_the_accounts_time_zones() -> None:
    now = datetime(2026, 2, 19, 23, 30, tzinfo=UTC)

    assert choose_days(now, ["Asia/Tokyo"], 1) == (date(2026, 2, 19), date(2026, 2, 20))
    assert choose_days(now, ["America/New_York", "Asia/Tokyo"], 0) == (date(2026, 2, 19), date(2026, 2, 20))
    assert choose_days(now, ["No/Such_Zone"], 0) == (date(2026, 2, 19), date(2026, 2, 19))


def test_the_id_of_the_scheduled_job_contains_its_due_time() -> None:
    job = build_schedule_job(Cron("*/5 * * * *"))

    assert job.job_id(datetime(2026, 2, 19, 12, 5, tzinfo=UTC)) == "stats-schedule-2026-02-19T12-05"


async def test_monthly_partitions_are_created_ahead(pool: Pool) -> None:
    await a_scheduler(pool, FakeQueue()).handle(TICK)

    rows = await pool.fetch(
        "SELECT relname FROM pg_class WHERE relname ~ '^ad_stats_raw_2[0-9]{5}$' ORDER BY 1"
    )
    assert [row["relname"][-6:] for row in rows] == ["202602", "202603", "202604"]


async def test_the_age_of_the_figures_is_that_of_the_stalest_seller(pool: Pool) -> None:
    fresh, stale = await a_seller(pool), await a_seller(pool)
    await pool.execute("UPDATE sync.ad_accounts SET created_at = $1", NOW - timedelta(days=9))
    clock = ManualClock(NOW - timedelta(hours=2))
    for level in Level:
        await a_processor(pool, clock=clock).sync(a_job(stale, level))
        await a_processor(pool).sync(a_job(fresh, level))
    scheduler = a_scheduler(pool, FakeQueue())

    await scheduler.handle(TICK)

    ages = scheduler.ages
    assert (ages.sellers, ages.stale, ages.stalest) == (2, 1, [stale.id])
    assert ages.longest == ((stale.id, NOW - timedelta(hours=2)), (fresh.id, NOW))
    assert (ages.oldest, ages.newest) == (NOW - timedelta(hours=2), NOW)


async def test_a_seller_never_synced_is_as_old_as_its_account(pool: Pool) -> None:
    seller = await a_seller(pool)
    await pool.execute("UPDATE sync.ad_accounts SET created_at = $1", NOW - timedelta(days=2))
    scheduler = a_scheduler(pool, FakeQueue())

    await scheduler.handle(TICK)

    assert scheduler.ages.oldest == NOW - timedelta(days=2)
    assert scheduler.ages.stalest == [seller.id]
