"""A sync that is killed at any point, and run again, leaves the same tables as an undisturbed one."""

from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.runtime.postgres import Pool
from adloom.sync.words import Level
from tests.sync.dying_pool import DyingPool, Killed
from tests.sync.shop import DAY, NOW, Seller, a_job, a_processor, a_seller, stamps, tables

EMPTY = """
    DELETE FROM sync.ad_stats_raw;
    DELETE FROM sync.ad_stats_daily;
    DELETE FROM sync.sellpage_stats_daily;
    DELETE FROM sync.freshness
"""
DAYS = {"date_from": DAY - timedelta(days=8), "date_to": DAY}


async def run(pool: object, seller: Seller, clock: ManualClock) -> None:
    processor = a_processor(pool, clock=clock)
    for level in Level:
        await processor.sync(a_job(seller, level, **DAYS))
        clock.advance(timedelta(seconds=1))


async def test_a_run_killed_between_any_two_statements_is_repaired_by_the_next(pool: Pool) -> None:
    seller = await a_seller(pool, pages=2, ads=1)
    counting = DyingPool(pool)
    await run(counting, seller, ManualClock(NOW))
    undisturbed = await tables(pool)

    for point in range(1, counting.points + 1):
        await pool.execute(EMPTY)
        clock = ManualClock(NOW)
        try:
            await run(DyingPool(pool, dies_at=point), seller, clock)
        except Killed:
            clock.advance(timedelta(minutes=5))
            await run(pool, seller, clock)
        assert await tables(pool) == undisturbed, f"killed at point {point}"

    assert len(undisturbed["daily"]) == 6 * 9
    assert counting.points > 60


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(points=st.lists(st.integers(1, 120), min_size=1, max_size=4))
async def test_repeatedly_killed_runs_are_repaired_by_the_last(pool: Pool, points: list[int]) -> None:
    await pool.execute(EMPTY)
    seller = await a_seller(pool, campaigns=1)
    clock = ManualClock(NOW)

    for point in points:
        try:
            await run(DyingPool(pool, dies_at=point), seller, clock)
        except Killed:
            clock.advance(timedelta(minutes=5))
    await run(pool, seller, clock)
    once, stamped = await tables(pool), await stamps(pool)
    await pool.execute(EMPTY)
    await run(pool, seller, clock)

    assert await tables(pool) == once
    assert len(stamped) == len(once["daily"]) + len(once["pages"])
