"""A day is rolled up from its rows: every event once, and nothing outdated."""

import asyncio
import contextlib
from datetime import UTC, date, datetime, timedelta

import pytest

from adloom.core.clock import ManualClock
from adloom.runtime.postgres import Connection, Pool
from adloom.stats import rollup_store
from adloom.stats.rollup import DayDroppedError, Rollup, RollupRefusedError, refuse_dropped, split_blocks
from adloom.stats.rollup_store import DayFound
from tests.stats.event_rows import NOON, EventRow, an_event, insert_catalog, insert_events

DAY = NOON.date()
ONE_DAY = timedelta(days=1)
STATISTICS = """
    SELECT banner_id, placement_id, campaign_id, impressions, clicks, invalid_impressions, invalid_clicks
      FROM banner_stats WHERE stat_date = $1 ORDER BY 1, 2, 3
"""


@pytest.fixture(autouse=True)
async def _catalog(pool: Pool) -> None:
    await insert_catalog(pool, 3)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON + ONE_DAY)


@pytest.fixture
def rollup(pool: Pool, clock: ManualClock) -> Rollup:
    return Rollup(pool, clock, batch_blocks=1)


async def statistics(pool: Pool, day: date = DAY) -> list[tuple[int | None, ...]]:
    return [tuple(row) for row in await pool.fetch(STATISTICS, day)]


async def is_fresh(pool: Pool, day: date = DAY) -> bool:
    async with rollup_store.open_day(pool, day) as connection:
        return (await rollup_store.find_day(connection, day)).is_fresh


async def finish(connection: Connection, found: DayFound, clock: ManualClock) -> int:
    """Finish a rollup that has taken its snapshot, and return the number of events that it read."""
    await rollup_store.make_stage(connection)
    for kind, blocks, _ in split_blocks(found, 1):
        await rollup_store.stage(connection, DAY, kind, blocks)
    staged = await rollup_store.stage_events(connection)
    await rollup_store.overwrite(connection, DAY, found, now=clock.now())
    return staged


async def test_a_day_is_counted_by_banner_placement_and_campaign(pool: Pool, rollup: Rollup) -> None:
    await insert_events(
        pool,
        *[an_event(banner=1, placement=2, campaign=3)] * 3,
        an_event(kind="clicks", banner=1, placement=2, campaign=3, is_valid=False),
        an_event(banner=1, placement=2, campaign=None, is_valid=False),
        an_event(kind="clicks", banner=2, placement=1, campaign=None),
    )

    rolled = await rollup.roll_up(DAY)

    assert rolled is not None
    assert (rolled.events, rolled.rows) == (6, 3)
    assert await statistics(pool) == [
        (1, 2, 3, 3, 1, 0, 1),
        (1, 2, None, 1, 0, 1, 0),
        (2, 1, None, 0, 1, 0, 0),
    ]


async def test_rolling_up_again_changes_nothing(pool: Pool, rollup: Rollup, clock: ManualClock) -> None:
    await insert_events(pool, an_event(), an_event(campaign=1))
    await rollup.roll_up(DAY)
    before = await pool.fetch("SELECT * FROM banner_stats ORDER BY id")

    clock.advance(ONE_DAY)
    await rollup.roll_up(DAY)

    assert await pool.fetch("SELECT * FROM banner_stats ORDER BY id") == before


async def test_a_rollup_replaces_outdated_rows_and_recomputes_spend(
    pool: Pool, rollup: Rollup, clock: ManualClock
) -> None:
    await insert_events(pool, an_event())
    await pool.execute(
        "INSERT INTO spend_hours VALUES ($1, 1, 1, 3, 2, 25_000), ($2, 1, 1, 3, 2, 4_999), ($3, 1, 1, 3, 1, 9)",
        *(datetime(2026, 11, day, hour, tzinfo=UTC) for day, hour in ((14, 0), (14, 23), (15, 0))),
    )
    await pool.execute(
        "INSERT INTO banner_stats (banner_id, placement_id, campaign_id, stat_date, impressions, clicks, spend_paisa)"
        " VALUES (1, 1, NULL, $1, 70, 7, 42), (2, 2, 2, $1, 5, 0, 1), (2, 2, 2, $2, 5, 0, 1)",
        DAY,
        DAY - ONE_DAY,
    )

    await rollup.roll_up(DAY)

    assert await statistics(pool) == [(1, 1, 3, 0, 0, 0, 0), (1, 1, None, 1, 0, 0, 0)]
    kept = await pool.fetch(
        "SELECT spend_paisa, spend_micros, updated_at FROM banner_stats WHERE stat_date = $1 ORDER BY campaign_id",
        DAY,
    )
    assert [tuple(row) for row in kept] == [(2, 29_999, clock.now()), (0, 0, clock.now())]
    assert len(await statistics(pool, DAY - ONE_DAY)) == 1


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        (datetime(2026, 11, 13, 23, 59, 59, 999_999, tzinfo=UTC), DAY - ONE_DAY),
        (datetime(2026, 11, 14, 0, 0, tzinfo=UTC), DAY),
        (datetime(2026, 11, 14, 23, 59, 59, 999_999, tzinfo=UTC), DAY),
        (datetime(2026, 11, 15, 0, 0, tzinfo=UTC), DAY + ONE_DAY),
        # In Berlin one of these days has 23 hours, and the other 25.
        (datetime(2026, 3, 29, 23, 30, tzinfo=UTC), date(2026, 3, 29)),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), date(2026, 10, 25)),
    ],
)
async def test_a_day_begins_and_ends_at_midnight_of_utc(
    moment: datetime, day: date, pool: Pool, rollup: Rollup
) -> None:
    database = await pool.fetchval("SELECT current_database()")
    await pool.execute(f"ALTER DATABASE {database} SET timezone = 'Asia/Kolkata'")
    await pool.expire_connections()
    await insert_events(pool, an_event(at=moment))

    for number in (-1, 0, 1):
        await rollup.roll_up(day + number * ONE_DAY)

    rows = await pool.fetch("SELECT stat_date, impressions FROM banner_stats")
    assert [tuple(row) for row in rows] == [(day, 1)]


async def test_a_late_event_makes_its_day_stale(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event())
    await rollup.roll_up(DAY)
    assert await is_fresh(pool)

    await insert_events(pool, an_event())
    assert not await is_fresh(pool)
    await rollup.roll_up(DAY, only_if_stale=True)

    assert await is_fresh(pool)
    assert await statistics(pool) == [(1, 1, None, 2, 0, 0, 0)]
    assert await rollup.roll_up(DAY, only_if_stale=True) is None


async def test_a_click_that_becomes_valid_later_makes_the_day_stale(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event(kind="clicks", is_valid=False))
    await rollup.roll_up(DAY)

    await pool.execute("UPDATE events.banner_clicks SET is_valid = true")
    await pool.execute("UPDATE events.event_days SET corrections = corrections + 1")
    assert not await is_fresh(pool)
    await rollup.roll_up(DAY, only_if_stale=True)

    assert await statistics(pool) == [(1, 1, None, 0, 1, 0, 0)]


async def test_an_event_applied_during_a_rollup_makes_the_day_stale(pool: Pool, clock: ManualClock) -> None:
    """The snapshot is taken, the first batch is read; then an event is committed."""
    await insert_events(pool, an_event(), an_event(kind="clicks"))
    rollup = Rollup(pool, clock, batch_blocks=1)

    async with rollup_store.open_day(pool, DAY) as connection:
        found = await rollup_store.find_day(connection, DAY)
        await insert_events(pool, an_event(), an_event(kind="clicks", banner=2))
        assert await finish(connection, found, clock) == found.events == 2

    assert not await is_fresh(pool)
    await rollup.roll_up(DAY, only_if_stale=True)
    assert await statistics(pool) == [(1, 1, None, 2, 1, 0, 0), (2, 1, None, 0, 1, 0, 0)]


async def test_an_edit_of_the_catalog_does_not_stop_a_rollup(pool: Pool, clock: ManualClock) -> None:
    await insert_events(pool, an_event(campaign=1))

    async with rollup_store.open_day(pool, DAY) as connection:
        found = await rollup_store.find_day(connection, DAY)
        await pool.execute("UPDATE banners SET title = 'Another'")
        await pool.execute("UPDATE campaigns SET name = 'Another'")
        await finish(connection, found, clock)

    assert await statistics(pool) == [(1, 1, 1, 1, 0, 0, 0)]


async def test_two_rollups_of_a_day_run_one_after_the_other(
    pool: Pool, rollup: Rollup, clock: ManualClock
) -> None:
    await insert_events(pool, an_event())

    async with asyncio.TaskGroup() as group, rollup_store.open_day(pool, DAY) as connection:
        found = await rollup_store.find_day(connection, DAY)
        second = group.create_task(rollup.roll_up(DAY))
        await asyncio.sleep(0.2)
        await insert_events(pool, an_event())
        assert not second.done()
        await finish(connection, found, clock)

    assert await statistics(pool) == [(1, 1, None, 2, 0, 0, 0)]
    assert await is_fresh(pool)


async def test_concurrent_rollups_and_new_events_lose_nothing(pool: Pool, rollup: Rollup) -> None:
    async def apply() -> None:
        for number in range(30):
            await insert_events(pool, an_event(banner=1 + number % 3), an_event(kind="clicks"))

    async def roll() -> None:
        for _ in range(10):
            with contextlib.suppress(RollupRefusedError):
                await rollup.roll_up(DAY, only_if_stale=True)

    async with asyncio.TaskGroup() as group:
        group.create_task(apply())
        group.create_task(roll())
        group.create_task(roll())
    await rollup.roll_up(DAY, only_if_stale=True)

    assert await is_fresh(pool)
    assert await pool.fetchval("SELECT sum(impressions + clicks) FROM banner_stats") == 60


async def test_an_interrupted_rollup_leaves_the_day_unchanged(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event())
    await rollup.roll_up(DAY)
    await insert_events(pool, an_event())

    class CutOffError(Exception):
        pass

    def cut_off(_share: float) -> None:
        raise CutOffError

    with pytest.raises(CutOffError):
        await rollup.roll_up(DAY, on_progress=cut_off)

    assert await statistics(pool) == [(1, 1, None, 1, 0, 0, 0)]
    assert not await is_fresh(pool)
    assert await rollup.roll_up(DAY) is not None


async def test_progress_grows_to_one(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, *many(600), *many(300, kind="clicks"))
    shares: list[float] = []

    await rollup.roll_up(DAY, on_progress=shares.append)

    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert await pool.fetchval("SELECT sum(impressions + clicks) FROM banner_stats") == 900


async def test_a_dropped_day_is_not_rolled_up_and_keeps_its_statistics(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event(), an_event(at=NOON + ONE_DAY))
    await rollup.roll_up(DAY)
    await pool.execute("DROP TABLE events.banner_impressions_20261114, events.banner_clicks_20261114")

    with pytest.raises(DayDroppedError, match=r"2026-11-14 were dropped.*--from 2026-11-15"):
        await rollup.roll_up(DAY)
    with pytest.raises(DayDroppedError):
        await refuse_dropped(pool, DAY - ONE_DAY, DAY + ONE_DAY)
    await refuse_dropped(pool, DAY + ONE_DAY, DAY + ONE_DAY)

    assert await statistics(pool) == [(1, 1, None, 1, 0, 0, 0)]
    assert await rollup.roll_up(DAY + ONE_DAY) is not None


async def test_a_day_that_is_being_dropped_is_refused_too(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event())
    await pool.execute(
        "ALTER TABLE events.banner_impressions DETACH PARTITION events.banner_impressions_20261114"
    )

    with pytest.raises(DayDroppedError):
        await rollup.roll_up(DAY)


async def test_a_rollup_is_refused_when_rows_and_counts_differ(pool: Pool, rollup: Rollup) -> None:
    """As when a rebuild swaps the tables while their blocks are read."""
    await insert_events(pool, an_event(), an_event())
    await rollup.roll_up(DAY)
    await pool.execute("UPDATE events.event_days SET events = 3")

    with pytest.raises(RollupRefusedError, match="2 events in its rows, but 3 in its counts"):
        await rollup.roll_up(DAY)

    assert await statistics(pool) == [(1, 1, None, 2, 0, 0, 0)]
    assert not await is_fresh(pool)


async def test_a_day_without_events_is_rolled_up_to_no_rows(pool: Pool, rollup: Rollup) -> None:
    rolled = await rollup.roll_up(DAY)

    assert rolled is not None
    assert (rolled.events, rolled.rows) == (0, 0)
    assert await is_fresh(pool)


async def test_figures_of_a_deleted_placement_are_rolled_up(pool: Pool, rollup: Rollup) -> None:
    await insert_events(pool, an_event(placement=2))
    await pool.execute("DELETE FROM placements WHERE id = 2")

    await rollup.roll_up(DAY)

    assert await statistics(pool) == [(1, 2, None, 1, 0, 0, 0)]


async def test_a_batch_reads_only_its_own_blocks(pool: Pool) -> None:
    """If each batch read the whole day, a large one would take hours."""
    await insert_events(pool, *many(600), an_event(at=NOON + ONE_DAY))
    begins, ends = rollup_store.find_bounds(DAY)

    async with rollup_store.open_day(pool, DAY) as connection:
        await rollup_store.make_stage(connection)
        plan = await connection.fetch(
            f"EXPLAIN {rollup_store.STAGE['impressions']}", begins, ends, (1, 0), (2, 0)
        )

    lines = "\n".join(row[0] for row in plan)
    assert "Tid Range Scan on banner_impressions_20261114" in lines
    assert "20261115" not in lines


def test_batches_cover_every_block_once() -> None:
    found = DayFound(
        events=1,
        corrections=0,
        has_rows=True,
        has_statistics=False,
        is_fresh=False,
        impression_blocks=7,
        click_blocks=2,
    )

    parted = list(split_blocks(found, 3))

    assert [(kind, list(blocks)) for kind, blocks, _ in parted] == [
        ("impressions", [0, 1, 2]),
        ("impressions", [3, 4, 5]),
        ("impressions", [6]),
        ("clicks", [0, 1]),
    ]
    assert [round(share * 9) for _, _, share in parted] == [3, 6, 7, 9]


def many(count: int, **fields: str) -> list[EventRow]:
    return [an_event(banner=1 + number % 3, **fields) for number in range(count)]
