"""The scheduled rollup: once a night, again after late events, and for missed nights."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

import asyncpg
import pytest
from redis.exceptions import ConnectionError as ValkeyConnectionError

from adloom.core.clock import ManualClock
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.queue import JobQueue, open_queue
from adloom.runtime.jobs.worker import JobAttempt, JobWorker
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.settings import read_worker_settings
from adloom.stats.rollup import (
    POLL_EVERY,
    REST,
    ROLLUP_STATS,
    Rollup,
    StaleDays,
    make_rollup_job,
    name_nightly_job,
    name_stale_job,
    parse_job_id,
)
from tests.stats.event_rows import an_event, insert_catalog, insert_events

EVERY_NIGHT = Cron("0 1 * * *")
DAY = date(2026, 11, 14)
ONE_DAY = timedelta(days=1)
NEXT_NIGHT = datetime(2026, 11, 15, 1, 0, tzinfo=UTC)


def noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


class Recorder:
    """A queue that records what was put, each once, and may be away."""

    def __init__(self) -> None:
        self.put_ids: list[str] = []
        self.tried_again: list[tuple[str, datetime | None]] = []
        self.is_away = False

    async def put(self, name: str, *, job_id: str, priority: int = 0) -> None:
        assert (name, priority) == (ROLLUP_STATS, 10)
        if self.is_away:
            raise ValkeyConnectionError
        if job_id not in self.put_ids:
            self.put_ids.append(job_id)

    async def retry(self, job_id: str, *, died_before: datetime | None = None) -> bool:
        self.tried_again.append((job_id, died_before))
        return False


@pytest.fixture(autouse=True)
async def _catalog(pool: Pool) -> None:
    await insert_catalog(pool, 1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NEXT_NIGHT)


@pytest.fixture
def queue() -> Recorder:
    return Recorder()


@pytest.fixture
def stale(pool: Pool, queue: Recorder, clock: ManualClock) -> StaleDays:
    return StaleDays(pool, queue, EVERY_NIGHT, clock)


def a_job(job_id: str) -> JobAttempt:
    return JobAttempt(name=ROLLUP_STATS, id=job_id, data={}, attempt=1)


async def rolled_days(pool: Pool) -> list[date]:
    return [row["day"] for row in await pool.fetch("SELECT day FROM rollup_days ORDER BY day")]


@pytest.mark.parametrize(
    ("moment", "job_id"),
    [
        (datetime(2026, 11, 15, 1, tzinfo=UTC), "banner-rollup-2026-11-14"),
        (datetime(2026, 11, 15, 0, 0, tzinfo=UTC), "banner-rollup-2026-11-14"),
        (datetime(2026, 11, 14, 23, 59, tzinfo=UTC), "banner-rollup-2026-11-13"),
        (datetime(2027, 1, 1, 1, tzinfo=UTC), "banner-rollup-2026-12-31"),
        # Nights on which clocks change in Berlin are not special.
        (datetime(2026, 3, 29, 1, tzinfo=UTC), "banner-rollup-2026-03-28"),
        (datetime(2026, 10, 25, 1, tzinfo=UTC), "banner-rollup-2026-10-24"),
    ],
)
def test_the_nightly_job_names_the_day_before(moment: datetime, job_id: str) -> None:
    assert name_nightly_job(moment) == make_rollup_job(EVERY_NIGHT).job_id(moment) == job_id


def test_the_id_of_a_job_names_its_day() -> None:
    assert parse_job_id("banner-rollup-2026-11-14") == (DAY, False)
    assert parse_job_id(name_stale_job(DAY, 12_345)) == (DAY, True)
    assert name_stale_job(DAY, 12_345) == "banner-rollup-2026-11-14-12345"


def test_the_time_of_the_nightly_job_is_a_setting() -> None:
    services = {"DATABASE_URL": "postgresql://db/adloom", "REDIS_URL": "redis://cache"}

    assert read_worker_settings(services).stats_rollup_cron.expression == "0 1 * * *"
    other = read_worker_settings({**services, "BANNER_STATS_ROLLUP_CRON": "30 4 * * *"})
    assert other.stats_rollup_cron.expression == "30 4 * * *"


async def test_the_nightly_job_rolls_up_its_day_and_then_stale_ones(
    pool: Pool, clock: ManualClock, queue: Recorder, stale: StaleDays
) -> None:
    await insert_events(pool, an_event(), an_event(at=noon(DAY - ONE_DAY)))
    rollup = Rollup(pool, clock, then=stale.check)

    await rollup.handle(a_job("banner-rollup-2026-11-14"))

    assert await rolled_days(pool) == [DAY]
    assert queue.put_ids == ["banner-rollup-2026-11-13-1"]
    assert (rollup.days, stale.count) == (1, 1)


async def test_a_day_is_not_rolled_up_before_its_nightly_job(
    pool: Pool, clock: ManualClock, queue: Recorder
) -> None:
    await insert_events(pool, *(an_event(at=noon(DAY + number * ONE_DAY)) for number in (-1, 0, 1)))
    before_the_night = ManualClock(NEXT_NIGHT - timedelta(seconds=1))

    await StaleDays(pool, queue, EVERY_NIGHT, before_the_night).check()
    assert queue.put_ids == ["banner-rollup-2026-11-13-1"]

    await StaleDays(pool, queue, EVERY_NIGHT, clock).check()
    assert queue.put_ids == ["banner-rollup-2026-11-13-1", "banner-rollup-2026-11-14-1"]


async def test_a_day_with_late_events_is_rolled_up_again_after_a_pause(
    pool: Pool, clock: ManualClock, queue: Recorder, stale: StaleDays
) -> None:
    rollup = Rollup(pool, clock)
    await insert_events(pool, an_event())
    await rollup.roll_up(DAY)
    await stale.check()
    assert (queue.put_ids, stale.count) == ([], 0)

    await insert_events(pool, an_event(), an_event())
    await stale.check()
    assert (queue.put_ids, stale.count) == ([], 1)  # It was rolled up just now.

    clock.advance(REST)
    await stale.check()
    await stale.check()
    assert queue.put_ids == ["banner-rollup-2026-11-14-3"]

    await pool.execute("UPDATE events.event_days SET corrections = 2")
    await stale.check()
    assert queue.put_ids == ["banner-rollup-2026-11-14-3", "banner-rollup-2026-11-14-5"]

    await rollup.handle(a_job("banner-rollup-2026-11-14-5"))
    await rollup.handle(a_job("banner-rollup-2026-11-14-3"))
    assert rollup.days == 2
    assert await pool.fetchval("SELECT impressions FROM banner_stats") == 3


async def test_days_whose_rows_were_dropped_are_never_rolled_up_again(
    pool: Pool, clock: ManualClock, queue: Recorder, stale: StaleDays
) -> None:
    await insert_events(pool, an_event())
    await pool.execute("DROP TABLE events.banner_impressions_20261114, events.banner_clicks_20261114")

    await stale.check()
    # A job that was put before succeeds too: no attempt would bring the rows back.
    await Rollup(pool, clock).handle(a_job("banner-rollup-2026-11-14-1"))

    assert (queue.put_ids, stale.count) == ([], 0)
    assert await rolled_days(pool) == []


async def test_the_search_for_stale_days_continues_after_an_outage(
    pool: Pool, database_url: str, clock: ManualClock, queue: Recorder
) -> None:
    await insert_events(pool, an_event())
    queue.is_away = True
    pauses: list[timedelta] = []

    async def pause(length: timedelta, stop: asyncio.Event) -> None:
        pauses.append(length)
        queue.is_away = False
        if len(pauses) == 3:
            stop.set()

    await StaleDays(pool, queue, EVERY_NIGHT, clock, pause=pause).run(asyncio.Event())
    assert queue.put_ids == ["banner-rollup-2026-11-14-1"]
    assert pauses == [POLL_EVERY] * 3

    async with open_pool(database_url, size_max=1) as closed:
        pass
    with pytest.raises(asyncpg.InterfaceError):
        await closed.fetchval("SELECT 1")
    await StaleDays(closed, queue, EVERY_NIGHT, clock).check()


async def test_a_day_with_a_dead_job_is_retried_after_an_hour(
    pool: Pool, clock: ManualClock, queue: Recorder, stale: StaleDays
) -> None:
    await insert_events(pool, an_event())

    await stale.check()

    assert queue.tried_again == [("banner-rollup-2026-11-14-1", clock.now() - timedelta(hours=1))]


@asynccontextmanager
async def a_worker(pool: Pool, redis_url: str, clock: ManualClock) -> AsyncGenerator[JobQueue]:
    """All parts of a worker for the rollup, on a real queue."""
    async with open_queue("banners", redis_url) as queue:
        stale = StaleDays(pool, queue, EVERY_NIGHT, clock)
        rollup = Rollup(pool, clock, then=stale.check)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(JobWorker("banners", redis_url, {ROLLUP_STATS: rollup.handle}).run(stop))
            group.create_task(stale.run(stop))
            try:
                yield queue
            finally:
                stop.set()


async def test_missed_nights_are_rolled_up_later(pool: Pool, redis_url: str, clock: ManualClock) -> None:
    await insert_events(pool, *(an_event(at=noon(DAY - number * ONE_DAY)) for number in range(4)))

    async with a_worker(pool, redis_url, clock):
        await wait_for_days(pool, 4)

    assert await rolled_days(pool) == [DAY - number * ONE_DAY for number in (3, 2, 1, 0)]


async def test_two_workers_roll_up_the_same_days_consistently(
    pool: Pool, redis_url: str, clock: ManualClock
) -> None:
    await insert_events(pool, *(an_event(at=noon(DAY - number * ONE_DAY)) for number in range(6)))

    async with a_worker(pool, redis_url, clock), a_worker(pool, redis_url, clock):
        await wait_for_days(pool, 6)

    assert await pool.fetchval("SELECT sum(impressions) FROM banner_stats") == 6


async def wait_for_days(pool: Pool, count: int) -> None:
    async with asyncio.timeout(60):
        while len(await rolled_days(pool)) < count:  # noqa: ASYNC110 - a worker does it
            await asyncio.sleep(0.05)
