"""The keeper of the index: it follows the catalog change by change and equals a whole rebuild."""

import asyncio
from collections.abc import AsyncGenerator
from uuid import UUID

import pytest

from adloom.catalog.changes import Catalog, Noun
from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.delivery import store
from adloom.delivery.index import compiled
from adloom.delivery.publish import IndexKeeper
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.eventually import eventually

INSERT_PLACEMENT = """
    INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, $2, 'Label', 'full_slider') RETURNING id
"""
INSERT_BANNER = (
    "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'T', 'https://x/') RETURNING id"
)
INSERT_CAMPAIGN = "INSERT INTO campaigns (public_id, name, status) VALUES ($1, 'C', 'active') RETURNING id"
LINK = "INSERT INTO campaign_placements (campaign_id, placement_id) VALUES ($1, $2)"
ASSIGN = "INSERT INTO banner_assignments (campaign_id, placement_id, banner_id) VALUES ($1, $2, $3)"


@pytest.fixture
def catalog(pool: Pool, valkey: Valkey) -> Catalog:
    return Catalog(pool, valkey)


@pytest.fixture
async def keeper(pool: Pool, valkey: Valkey) -> IndexKeeper:
    return IndexKeeper(pool, valkey, SystemClock())


@pytest.fixture
async def running_keeper(keeper: IndexKeeper) -> AsyncGenerator[IndexKeeper]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        yield keeper
        task.cancel()


async def inserted(catalog: Catalog, noun: Noun, sql: str, *values: object) -> tuple[UUID, int]:
    public_id = SystemIds().new()
    async with catalog.write() as write:
        key = await write.connection.fetchval(sql, public_id, *values)
        write.touch(noun, key)
    return public_id, key


async def an_ad(catalog: Catalog, slug: str) -> tuple[int, int, int]:
    """Make a placement, a banner and a campaign that belong together; give their keys."""
    _, placement = await inserted(catalog, Noun.PLACEMENT, INSERT_PLACEMENT, slug)
    _, banner = await inserted(catalog, Noun.BANNER, INSERT_BANNER)
    _, campaign = await inserted(catalog, Noun.CAMPAIGN, INSERT_CAMPAIGN)
    async with catalog.write() as write:
        await write.connection.execute(LINK, campaign, placement)
        await write.connection.execute(ASSIGN, campaign, placement, banner)
        write.touch(Noun.PLACEMENT, placement)
    return placement, banner, campaign


async def change(catalog: Catalog, noun: Noun, key: int, sql: str) -> None:
    async with catalog.write() as write:
        await write.connection.execute(sql, key)
        write.touch(noun, key)


async def test_before_the_first_refresh_there_is_no_index(keeper: IndexKeeper) -> None:
    with pytest.raises(UnavailableError):
        _ = keeper.current


async def test_incremental_updates_equal_a_whole_rebuild(
    catalog: Catalog, keeper: IndexKeeper, pool: Pool
) -> None:
    await keeper.refresh()
    first = await an_ad(catalog, "first")
    second = await an_ad(catalog, "second")
    steps = [
        (Noun.BANNER, first[1], "UPDATE banners SET headline = 'New' WHERE id = $1"),
        (Noun.CAMPAIGN, second[2], "UPDATE campaigns SET status = 'paused' WHERE id = $1"),
        (Noun.PLACEMENT, first[0], "UPDATE placements SET slug = 'renamed' WHERE id = $1"),
        (Noun.BANNER, second[1], "UPDATE banners SET deleted_at = now() WHERE id = $1"),
        (Noun.PLACEMENT, second[0], "DELETE FROM placements WHERE id = $1"),
        (Noun.CAMPAIGN, first[2], "UPDATE campaigns SET deleted_at = now() WHERE id = $1"),
    ]
    for noun, key, sql in steps:
        await change(catalog, noun, key, sql)

        await keeper.refresh()

        assert keeper.current == compiled(await store.snapshot(await pool.acquire()))


async def test_a_keeper_that_was_away_too_long_reads_everything(
    catalog: Catalog, keeper: IndexKeeper, pool: Pool
) -> None:
    await keeper.refresh()
    await an_ad(catalog, "home")
    await pool.execute("DELETE FROM catalog_changes WHERE version < 3")

    await keeper.refresh()

    assert set(keeper.current.by_slug) == {b"home"}


async def test_a_notice_brings_a_change_without_waiting_for_the_next_look(
    catalog: Catalog, running_keeper: IndexKeeper
) -> None:
    await eventually(lambda: running_keeper.version == 0, seconds=5)
    await asyncio.sleep(0.2)  # the subscription is there

    await an_ad(catalog, "home")

    await eventually(lambda: running_keeper.version == 4, seconds=0.6)
    assert set(running_keeper.current.by_slug) == {b"home"}


async def test_a_lost_notice_is_made_up_for_by_looking(pool: Pool, running_keeper: IndexKeeper) -> None:
    await eventually(lambda: running_keeper.version == 0, seconds=5)

    await pool.execute("UPDATE catalog_version SET version = 1")

    await eventually(lambda: running_keeper.version == 1, seconds=2)


async def test_a_deleted_banner_still_leads_its_old_offers_somewhere(
    catalog: Catalog, keeper: IndexKeeper, pool: Pool
) -> None:
    placement, banner, campaign = await an_ad(catalog, "home")
    await change(catalog, Noun.BANNER, banner, "UPDATE banners SET cta_url = 'https://shop/' WHERE id = $1")
    await change(catalog, Noun.BANNER, banner, "UPDATE banners SET deleted_at = now() WHERE id = $1")
    ids = [
        await pool.fetchval(f"SELECT public_id FROM {table} WHERE id = $1", key)  # noqa: S608 - our own names
        for table, key in (("campaigns", campaign), ("placements", placement), ("banners", banner))
    ]

    await keeper.refresh()

    assert keeper.current.by_slug[b"home"].primaries == ()
    assert keeper.current.destination(*ids) == "https://shop/"
