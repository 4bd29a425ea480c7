"""The job that updates statuses by their dates: four moves, their audit trail, and nothing if none is due."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from adloom.catalog.schedule_sync import ScheduleSync, sync_job, sync_job_id
from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.resource.changes import Catalog, IndexedNoun, read_version
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.queue import open_queue
from adloom.runtime.jobs.schedule import CronSchedule
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from tests.support.eventually import eventually
from tests.support.for_each import for_each

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
BEFORE = NOON - timedelta(hours=1)
AFTER = NOON + timedelta(hours=1)
LONG_AGO = NOON - timedelta(days=30)

INSERT_BANNER = """
    INSERT INTO banners
           (public_id, title, primary_image_url, schedule_status, publish_at, expires_at, deleted_at, updated_at)
    VALUES ($1, 'T', 'https://x/', $2, $3, $4, $5, $6)
    RETURNING id
"""
INSERT_CAMPAIGN = """
    INSERT INTO campaigns (public_id, name, status, starts_at, ends_at, deleted_at, updated_at)
    VALUES ($1, 'C', $2, $3, $4, $5, $6)
    RETURNING id
"""


@pytest.fixture
def catalog(pool: Pool, valkey: Valkey) -> Catalog:
    return Catalog(pool, valkey)


@pytest.fixture
def sync(catalog: Catalog) -> ScheduleSync:
    return ScheduleSync(catalog, ManualClock(NOON))


async def a_banner(
    pool: Pool,
    status: str,
    publish_at: datetime | None = None,
    expires_at: datetime | None = None,
    deleted_at: datetime | None = None,
) -> int:
    return await pool.fetchval(
        INSERT_BANNER, SystemIds().make(), status, publish_at, expires_at, deleted_at, LONG_AGO
    )


async def a_campaign(
    pool: Pool,
    status: str,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    deleted_at: datetime | None = None,
) -> int:
    return await pool.fetchval(
        INSERT_CAMPAIGN, SystemIds().make(), status, starts_at, ends_at, deleted_at, LONG_AGO
    )


async def version_of(pool: Pool) -> int:
    async with pool.acquire() as connection:
        return await read_version(connection)


@for_each(
    ("status", "publish_at", "expires_at", "becomes"),
    [
        ("scheduled", BEFORE, None, "active"),
        ("scheduled", NOON, AFTER, "active"),
        ("scheduled", None, None, "active"),
        ("scheduled", AFTER, None, "scheduled"),
        ("scheduled", LONG_AGO, BEFORE, "expired"),
        ("active", LONG_AGO, BEFORE, "expired"),
        ("active", BEFORE, NOON, "active"),
        ("active", BEFORE, NOON - timedelta(microseconds=1), "expired"),
        ("active", BEFORE, AFTER, "active"),
        ("active", None, None, "active"),
        ("draft", LONG_AGO, BEFORE, "draft"),
        ("evergreen", LONG_AGO, BEFORE, "evergreen"),
        ("expired", BEFORE, AFTER, "expired"),
    ],
)
async def test_a_banner_moves_by_its_dates(  # noqa: PLR0913, PLR0917 - the columns of the table
    sync: ScheduleSync,
    pool: Pool,
    status: str,
    publish_at: datetime | None,
    expires_at: datetime | None,
    becomes: str,
) -> None:
    key = await a_banner(pool, status, publish_at, expires_at)

    moves = await sync.run()

    row = await pool.fetchrow("SELECT schedule_status, updated_at FROM banners WHERE id = $1", key)
    assert row is not None
    assert row["schedule_status"] == becomes
    assert row["updated_at"] == (LONG_AGO if status == becomes else NOON)
    assert [(move.noun, move.key, move.was, move.is_now) for move in moves] == (
        [] if status == becomes else [(IndexedNoun.BANNER, key, status, becomes)]
    )


@for_each(
    ("status", "starts_at", "ends_at", "becomes"),
    [
        ("scheduled", BEFORE, None, "active"),
        ("scheduled", NOON, AFTER, "active"),
        ("scheduled", AFTER, None, "scheduled"),
        ("scheduled", LONG_AGO, BEFORE, "ended"),
        ("active", LONG_AGO, NOON, "active"),
        ("active", LONG_AGO, NOON - timedelta(microseconds=1), "ended"),
        ("active", BEFORE, AFTER, "active"),
        ("active", None, None, "active"),
        ("draft", LONG_AGO, BEFORE, "draft"),
        ("paused", LONG_AGO, BEFORE, "paused"),
        ("ended", BEFORE, AFTER, "ended"),
        ("cancelled", BEFORE, AFTER, "cancelled"),
    ],
)
async def test_a_campaign_moves_by_its_dates(  # noqa: PLR0913, PLR0917 - the columns of the table
    sync: ScheduleSync,
    pool: Pool,
    status: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
    becomes: str,
) -> None:
    key = await a_campaign(pool, status, starts_at, ends_at)

    moves = await sync.run()

    assert await pool.fetchval("SELECT status FROM campaigns WHERE id = $1", key) == becomes
    assert [(move.noun, move.key, move.was, move.is_now) for move in moves] == (
        [] if status == becomes else [(IndexedNoun.CAMPAIGN, key, status, becomes)]
    )


async def test_deleted_items_do_not_move(sync: ScheduleSync, pool: Pool) -> None:
    await a_banner(pool, "scheduled", BEFORE, None, NOON)
    await a_banner(pool, "active", LONG_AGO, BEFORE, NOON)
    await a_campaign(pool, "scheduled", BEFORE, None, NOON)
    await a_campaign(pool, "active", LONG_AGO, BEFORE, NOON)

    assert await sync.run() == []


async def test_all_moves_of_a_run_are_one_version(sync: ScheduleSync, pool: Pool) -> None:
    await a_banner(pool, "scheduled", BEFORE)
    await a_banner(pool, "active", LONG_AGO, BEFORE)
    await a_campaign(pool, "scheduled", BEFORE)
    await a_campaign(pool, "active", LONG_AGO, BEFORE)
    before = await version_of(pool)

    moves = await sync.run()

    assert len(moves) == sync.moved == 4
    assert await version_of(pool) == before + 1


async def test_a_run_without_moves_keeps_the_version(sync: ScheduleSync, pool: Pool) -> None:
    before = await version_of(pool)
    await sync.run()
    assert await version_of(pool) == before

    await a_banner(pool, "scheduled", BEFORE)
    await sync.run()
    assert await sync.run() == []

    assert await version_of(pool) == before + 1


async def test_more_rows_than_fit_one_transaction_are_moved(catalog: Catalog, pool: Pool) -> None:
    for _ in range(7):
        await a_banner(pool, "scheduled", BEFORE)
        await a_campaign(pool, "active", LONG_AGO, BEFORE)

    moves = await ScheduleSync(catalog, ManualClock(NOON), rows_max=3).run()

    assert len(moves) == 14
    assert await pool.fetchval("SELECT count(*) FROM banners WHERE schedule_status = 'active'") == 7


async def test_a_locked_row_is_left_for_the_next_run(sync: ScheduleSync, pool: Pool) -> None:
    busy, free = await a_banner(pool, "scheduled", BEFORE), await a_banner(pool, "scheduled", BEFORE)

    async with asyncio.timeout(60), pool.acquire() as editor, editor.transaction():
        await editor.execute("SELECT FROM banners WHERE id = $1 FOR UPDATE", busy)
        first = await sync.run()
    second = await sync.run()

    assert ([move.key for move in first], [move.key for move in second]) == ([free], [busy])


async def test_concurrent_runs_move_each_item_once(catalog: Catalog, pool: Pool) -> None:
    for _ in range(20):
        await a_banner(pool, "scheduled", BEFORE)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        runs = [group.create_task(ScheduleSync(catalog, ManualClock(NOON)).run()) for _ in range(4)]

    assert sum(len(run.result()) for run in runs) == 20


async def test_scheduled_moves_are_in_the_audit_trail(sync: ScheduleSync, pool: Pool) -> None:
    await a_banner(pool, "active", LONG_AGO, BEFORE)
    await a_campaign(pool, "scheduled", BEFORE)

    moves = await sync.run()

    rows = await pool.fetch(
        "SELECT subject, role, noun, noun_id, action, changes FROM audit_entries ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [
        (
            "system:schedule-sync",
            "system",
            "banner",
            str(moves[0].id),
            "expire",
            {"scheduleStatus": {"from": "active", "to": "expired"}},
        ),
        (
            "system:schedule-sync",
            "system",
            "campaign",
            str(moves[1].id),
            "activate",
            {"status": {"from": "scheduled", "to": "active"}},
        ),
    ]


async def test_an_index_is_refreshed_after_a_run(sync: ScheduleSync, pool: Pool, valkey: Valkey) -> None:
    refresher = IndexRefresher(pool, valkey, ManualClock(NOON))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(refresher.run())
        await refresher.wait_until_ready(seconds_max=5)
        before = refresher.version
        assert before is not None
        await a_banner(pool, "scheduled", BEFORE)

        await sync.run()

        await eventually(lambda: refresher.version == before + 1, seconds=30)
        running.cancel()


def test_the_job_id_names_the_minute_without_a_colon() -> None:
    assert sync_job_id(datetime(2026, 11, 15, 1, 2, 3, tzinfo=UTC)) == "banner-sync-2026-11-15T0102"


async def test_the_scheduled_job_runs_once_with_two_workers(
    catalog: Catalog, pool: Pool, redis_url: str
) -> None:
    await a_banner(pool, "scheduled", BEFORE)
    clock = ManualClock(NOON)
    sync = ScheduleSync(catalog, clock)
    job = sync_job(Cron("* * * * *"))
    stop = asyncio.Event()

    async with open_queue("banners", redis_url) as queue, asyncio.TaskGroup() as group:
        workers = [JobWorker("banners", redis_url, {job.name: sync.handle}) for _ in range(2)]
        for worker in workers:
            group.create_task(worker.run(stop))
            group.create_task(CronSchedule(job, queue, clock=clock).run(stop))
        await eventually(lambda: sync.moved == 1, seconds=30)
        await eventually(lambda: sum(worker.done for worker in workers) == 1, seconds=30)
        await asyncio.sleep(0.2)
        stop.set()

    assert sum(worker.done for worker in workers) == 1
