"""Counts of placements on which the better banner wins, from the event tables to delivery."""

from datetime import timedelta
from uuid import UUID

from adloom.core.clock import ManualClock
from adloom.market.results.placement_results import PlacementResultsFollower
from adloom.market.results.window import NO_RESULTS
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.site_results import ResultsLoader
from tests.events.builders import BANNER, NOW, OTHER_BANNER, PLACEMENT
from tests.events.catalog import insert_banner, insert_catalog

ADD = """
    INSERT INTO events.event_counts (
        hour, banner_id, placement_id, impressions, clicks, invalid_impressions, invalid_clicks
    )
    SELECT date_trunc('hour', $2::timestamptz), banners.id, placements.id, $3, $4, $5, $6
      FROM banners, placements WHERE banners.public_id = $1
"""
ROTATE = "UPDATE placements SET rotation = $1"


async def add(pool: Pool, banner: UUID, *counts: int, ago: timedelta = timedelta(0)) -> int:
    """Count impressions, clicks, and those of them that are not valid."""
    seen, clicked, invalid, invalid_clicks = (*counts, 0, 0)[:4]
    await pool.execute(ADD, banner, NOW - ago, seen, clicked, invalid, invalid_clicks)
    return await pool.fetchval("SELECT id FROM banners WHERE public_id = $1", banner)


async def test_delivery_learns_how_banners_do_on_a_placement(pool: Pool, valkey: Valkey) -> None:
    await insert_catalog(pool)
    await insert_banner(pool, OTHER_BANNER)
    await pool.execute(ROTATE, "best")
    clock, loader = ManualClock(NOW), ResultsLoader(valkey)
    follower = PlacementResultsFollower(pool, valkey, clock)
    first = await add(pool, BANNER, 100, 5, 10, 2)
    other = await add(pool, OTHER_BANNER, 50, 1, ago=timedelta(days=29))
    await add(pool, OTHER_BANNER, 7_000, 7_000, ago=timedelta(days=31))

    assert loader.find(PLACEMENT) == NO_RESULTS
    await follower.poll()
    await loader.refresh()

    assert loader.find(PLACEMENT).banners == {first: (90, 3), other: (50, 1)}

    await add(pool, OTHER_BANNER, 5, 1)
    clock.advance(timedelta(seconds=5))
    await follower.poll()
    await loader.refresh()

    assert loader.find(PLACEMENT).banners == {first: (90, 3), other: (55, 2)}


async def test_a_placement_that_begins_to_learn_has_its_past_at_once(pool: Pool, valkey: Valkey) -> None:
    await insert_catalog(pool)
    loader, follower = ResultsLoader(valkey), PlacementResultsFollower(pool, valkey, ManualClock(NOW))
    key = await add(pool, BANNER, 100, 5, ago=timedelta(days=3))
    loader.find(PLACEMENT)
    await follower.poll()
    await loader.refresh()
    assert loader.find(PLACEMENT) == NO_RESULTS  # Nobody asks for an ordered placement.

    await pool.execute(ROTATE, "best")
    await follower.poll()
    await loader.refresh()

    assert loader.find(PLACEMENT).banners == {key: (100, 5)}


async def test_what_valkey_has_lost_is_published_again(pool: Pool, valkey: Valkey) -> None:
    await insert_catalog(pool)
    await pool.execute(ROTATE, "best")
    clock = ManualClock(NOW)
    follower = PlacementResultsFollower(pool, valkey, clock)
    key = await add(pool, BANNER, 100, 5)
    await follower.poll()
    await valkey.flushdb()
    clock.advance(timedelta(minutes=1))

    await follower.poll()

    loader = ResultsLoader(valkey)
    loader.find(PLACEMENT)
    await loader.refresh()
    assert loader.find(PLACEMENT).banners == {key: (100, 5)}
