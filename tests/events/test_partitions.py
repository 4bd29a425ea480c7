"""Days of the event tables: made ahead, made when they are needed, dropped when they are old, and never in the way."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import digest_user
from adloom.events.log.event import BEGINNING, LogEntry
from adloom.events.ports import DecodedEntry
from adloom.events.tables.partition_store import EVENT_PARTITIONS, PartitionStore, ensure_days
from adloom.events.tables.partitions import DROPPED_AT_ONCE_MAX, PartitionMaintenance, RetentionPeriods
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from tests.events.builders import an_impression
from tests.events.catalog import insert_catalog

# The database's own clock is checked too, so these tests use today.
NOW = datetime.now(UTC)
TODAY = NOW.date()
RETENTION_DAYS = 30
RETENTION = RetentionPeriods(event_days=RETENTION_DAYS, ledger_days=7)
ATTACHED = """
    SELECT DISTINCT to_date(right(relname, 8), 'YYYYMMDD') FROM pg_inherits JOIN pg_class ON oid = inhrelid
     WHERE inhparent = 'events.banner_impressions'::regclass AND NOT inhdetachpending ORDER BY 1
"""
TABLES = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'banner_%\\_20%'"


def days_ago(count: int) -> date:
    return TODAY - timedelta(days=count)


class FakeLedger:
    """A log that begins with one entry, or none."""

    def __init__(self, began_at: datetime | None = None) -> None:
        self._began_at = began_at

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> Sequence[LogEntry]:
        assert (after, count_max) == (BEGINNING, 1)
        assert wait_seconds > 0
        return [LogEntry(f"{int(self._began_at.timestamp() * 1000)}-0", b"")] if self._began_at else []


def an_upkeep(pool: Pool, *, now: datetime = NOW, ledger: FakeLedger | None = None) -> PartitionMaintenance:
    return PartitionMaintenance(
        PartitionStore(pool),
        ledger or FakeLedger(),
        clock=ManualClock(now),
        retention=RETENTION,
    )


async def attached(pool: Pool) -> list[date]:
    return [row[0] for row in await pool.fetch(ATTACHED)]


async def apply(pool: Pool, *, on: date, at: datetime, user_id: UUID | None = None) -> None:
    """Apply an impression of a day, from an entry appended at the given time."""
    tables = EventTables(pool)
    occurred_at = datetime.combine(on, datetime.min.time(), UTC)
    event = an_impression(f"of {on}", occurred_at=occurred_at, received_at=occurred_at, user_id=user_id)
    after = await tables.read_cursor()
    record = DecodedEntry(f"{int(at.timestamp() * 1000)}-0", event)
    await tables.commit([record], after=after, cursor=record.entry_id)


async def test_partitions_are_created_from_yesterday_to_a_week_ahead(pool: Pool) -> None:
    upkeep = an_upkeep(pool)

    await upkeep.check()
    await upkeep.check()

    assert await attached(pool) == [days_ago(-ahead) for ahead in range(-1, 8)]
    assert upkeep.made == 9


async def test_partitions_beyond_the_retention_are_dropped_and_counts_stay(pool: Pool) -> None:
    await insert_catalog(pool)
    for age in (RETENTION_DAYS + 1, RETENTION_DAYS, 10):
        await apply(pool, on=days_ago(age), at=NOW - timedelta(days=age))

    upkeep = an_upkeep(pool)
    await upkeep.check()

    assert upkeep.dropped == 1
    assert (await attached(pool))[:2] == [days_ago(RETENTION_DAYS), days_ago(10)]
    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 2
    assert await pool.fetchval("SELECT sum(impressions) FROM events.event_counts") == 3
    assert await pool.fetchval("SELECT sum(events) FROM events.event_days") == 3
    assert await pool.fetchval(TABLES) == 2 * len(await attached(pool))


async def test_a_worker_with_a_fast_clock_drops_no_partition_that_is_recent_for_the_database(
    pool: Pool,
) -> None:
    await ensure(pool, days_ago(3))

    upkeep = an_upkeep(pool, now=NOW + timedelta(days=400))
    await upkeep.check()

    assert upkeep.dropped == 0
    assert days_ago(3) in await attached(pool)


async def test_an_old_partition_written_recently_is_kept_while_its_events_may_be_repeated(
    pool: Pool,
) -> None:
    await insert_catalog(pool)
    await apply(pool, on=days_ago(200), at=NOW - timedelta(days=5))

    await an_upkeep(pool).check()
    assert days_ago(200) in await attached(pool)
    await pool.execute("UPDATE events.event_days SET last_entry_ms = last_entry_ms - 5 * 86400000")
    await an_upkeep(pool).check()

    assert days_ago(200) not in await attached(pool)


async def test_only_the_oldest_few_partitions_are_dropped_per_check(pool: Pool) -> None:
    old = [days_ago(RETENTION_DAYS + age) for age in range(1, DROPPED_AT_ONCE_MAX + 3)]
    await ensure(pool, *old)
    upkeep = an_upkeep(pool)

    await upkeep.check()
    assert [day for day in await attached(pool) if day in old] == sorted(old)[DROPPED_AT_ONCE_MAX:]
    await upkeep.check()

    assert not set(old) & set(await attached(pool))
    assert upkeep.dropped == len(old)


async def test_a_long_read_delays_only_the_drop_of_a_partition(pool: Pool, database_url: str) -> None:
    old = days_ago(RETENTION_DAYS + 1)
    await ensure(pool, old, TODAY)
    await insert_catalog(pool)
    reader = await asyncpg.connect(database_url)
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("SELECT * FROM events.banner_impressions")

    with pytest.raises(asyncpg.LockNotAvailableError):
        await an_upkeep(pool).check()
    # The partition accepts no more rows, but still exists; others are unchanged.
    await apply(pool, on=TODAY, at=NOW)
    with pytest.raises(UnavailableError, match="being dropped"):
        await apply(pool, on=old, at=NOW)
    await transaction.rollback()
    await reader.close()
    await an_upkeep(pool).check()
    await apply(pool, on=old, at=NOW)

    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 2


async def test_an_interrupted_drop_is_finished(pool: Pool) -> None:
    old = days_ago(RETENTION_DAYS + 1)
    await ensure(pool, old)
    name = f"banner_impressions_{old:%Y%m%d}"
    await pool.execute(f"ALTER TABLE events.banner_impressions DETACH PARTITION events.{name} CONCURRENTLY")

    await an_upkeep(pool).check()

    assert await pool.fetchval(TABLES) == 2 * len(await attached(pool)) == 18


async def test_two_workers_do_not_drop_partitions_at_the_same_time(pool: Pool, database_url: str) -> None:
    await ensure(pool, days_ago(RETENTION_DAYS + 1))
    other = await asyncpg.connect(database_url)
    await other.execute("SELECT pg_advisory_lock(x'AD11'::integer, 2)")

    upkeep = an_upkeep(pool)
    await upkeep.check()
    assert upkeep.dropped == 0
    await other.close()
    await upkeep.check()

    assert upkeep.dropped == 1


async def test_two_workers_that_create_the_same_partition_wait_for_each_other(pool: Pool) -> None:
    async with pool.acquire() as one, pool.acquire() as other:
        transaction = one.transaction()
        await transaction.start()
        assert await ensure_days(one, EVENT_PARTITIONS, [TODAY]) == 1
        waiting = asyncio.create_task(ensure_days(other, EVENT_PARTITIONS, [TODAY]))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await transaction.commit()
        await waiting

    assert await attached(pool) == [TODAY]


async def test_an_erasure_is_remembered_as_long_as_rows_and_while_the_log_may_hold_earlier_events(
    pool: Pool,
) -> None:
    for days in (29, 30, 32, 34):
        await erase(pool, UUID(int=days), at=NOW - timedelta(days=days, minutes=1))

    await an_upkeep(pool, ledger=FakeLedger(NOW - timedelta(days=33))).check()
    assert await erased(pool) == {digest_user(UUID(int=days)) for days in (29, 30, 32)}
    await an_upkeep(pool).check()

    assert await erased(pool) == {digest_user(UUID(int=29))}


async def test_what_a_machine_had_in_its_spool_for_weeks_does_not_bring_an_erased_user_back(
    pool: Pool,
) -> None:
    await insert_catalog(pool)
    user = UUID(int=1)
    await erase(pool, user, at=NOW - timedelta(days=RETENTION_DAYS - 10))
    await an_upkeep(pool).check()

    await apply(pool, on=days_ago(RETENTION_DAYS - 5), at=NOW, user_id=user)

    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 1
    assert await pool.fetchval("SELECT count(user_id) FROM events.banner_impressions") == 0


class Broken:
    """A partition store whose server is away a few times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.is_well = asyncio.Event()

    async def ensure(self, days: Collection[date]) -> int:
        if self.times > 0:
            self.times -= 1
            raise ConnectionRefusedError
        self.is_well.set()
        return len(days)

    async def drop_old(
        self, *, before: date, kept_days: int, written_before: datetime, count_max: int
    ) -> list[date]:
        assert written_before.date() > before
        assert kept_days > count_max
        return []

    async def forget_erased(self, before: datetime) -> int:
        assert before < NOW
        return 0


async def test_maintenance_retries_soon_while_the_database_is_away() -> None:
    days, stop = Broken(times=3), asyncio.Event()
    upkeep = PartitionMaintenance(
        days,
        FakeLedger(),
        clock=ManualClock(NOW),
        retention=RETENTION,
        try_again_seconds=0.01,
    )

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(upkeep.run(stop))
        await days.is_well.wait()
        stop.set()

    assert (upkeep.failures, upkeep.made) == (3, 9)


async def ensure(pool: Pool, *days: date) -> None:
    async with pool.acquire() as connection:
        await ensure_days(connection, EVENT_PARTITIONS, days)


async def erase(pool: Pool, user: UUID, *, at: datetime) -> None:
    await pool.execute(
        "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)", digest_user(user), at
    )


async def erased(pool: Pool) -> set[bytes]:
    return {row["user_digest"] for row in await pool.fetch("SELECT user_digest FROM erased_users")}
