"""A rebuild of the index beside updates: no change waits for it, and none is lost."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any, Final, cast

import pytest

from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.resource.changes import Catalog, IndexedNoun
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background import index_refresh
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.index import contextual_store, store
from adloom.serving.index.index import Index
from tests.support.eventually import eventually

READS: Final = (
    store.PLACEMENTS,
    store.RULES,
    store.ASSIGNMENTS,
    contextual_store.CREATIVES,
    store.BANNER_IDS,
    store.CAMPAIGN_IDS,
    contextual_store.SITES,
)
INSERTS: Final = {
    IndexedNoun.PLACEMENT: """
        INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, 'slot-' || $1::uuid, 'L', 'full_slider')
        RETURNING id
    """,
    IndexedNoun.BANNER: """
        INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'T', 'https://x/') RETURNING id
    """,
    IndexedNoun.CAMPAIGN: """
        INSERT INTO campaigns (public_id, name, status, bid_type, bid_amount_micros)
        VALUES ($1, 'C', 'active', 'cpm', 1000000) RETURNING id
    """,
    IndexedNoun.SITE: """
        INSERT INTO sites (public_id, domain, name) VALUES ($1, 'a' || $1::uuid || '.example', 'S') RETURNING id
    """,
}
CHANGES: Final = (
    (IndexedNoun.CAMPAIGN, "UPDATE campaigns SET status = 'paused' WHERE id = $1"),
    (IndexedNoun.CAMPAIGN, "UPDATE campaigns SET status = 'active' WHERE id = $1"),
    (
        IndexedNoun.CAMPAIGN,
        "UPDATE campaigns SET bid_amount_micros = bid_amount_micros + 10000 WHERE id = $1",
    ),
    (IndexedNoun.CAMPAIGN, "UPDATE campaigns SET deleted_at = now() WHERE id = $1"),
    (IndexedNoun.BANNER, "UPDATE banners SET headline = 'New' WHERE id = $1"),
    (IndexedNoun.BANNER, "UPDATE banners SET is_active = NOT is_active WHERE id = $1"),
    (IndexedNoun.PLACEMENT, "UPDATE placements SET slug = slug || '-new' WHERE id = $1"),
    (IndexedNoun.PLACEMENT, "UPDATE placements SET delivery = 'auction' WHERE id = $1"),
    (IndexedNoun.PLACEMENT, "UPDATE placements SET delivery = 'direct' WHERE id = $1"),
    (IndexedNoun.PLACEMENT, "DELETE FROM placements WHERE id = $1"),
    (IndexedNoun.SITE, "UPDATE sites SET is_suspended = NOT is_suspended WHERE id = $1"),
    (IndexedNoun.SITE, "DELETE FROM sites WHERE id = $1"),
)
LINK: Final = """
    INSERT INTO campaign_placements (campaign_id, placement_id) SELECT $1, id FROM placements WHERE id = $2
    ON CONFLICT DO NOTHING
"""
ASSIGN: Final = """
    INSERT INTO banner_assignments (campaign_id, placement_id, banner_id) SELECT $1, id, $3 FROM placements WHERE id = $2
    ON CONFLICT DO NOTHING
"""
ADD_CREATIVE: Final = (
    "INSERT INTO creatives (campaign_id, banner_id, created_at) VALUES ($1, $2, now()) ON CONFLICT DO NOTHING"
)


class HeldPool:
    """A pool whose connections wait at one query until they are let go."""

    def __init__(self, pool: Pool, query: str) -> None:
        self._pool = pool
        self.query = query
        self.is_reached = asyncio.Event()
        self.is_let_go = asyncio.Event()
        self.is_let_go.set()

    def hold(self) -> None:
        self.is_reached.clear()
        self.is_let_go.clear()

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Connection]:
        async with self._pool.acquire() as connection:
            yield cast("Connection", _HeldConnection(connection, self))


class _HeldConnection:
    def __init__(self, connection: Connection, held: HeldPool) -> None:
        self._connection = connection
        self._held = held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def cursor(self, query: str, *values: object) -> object:
        if query == self._held.query:
            self._held.is_reached.set()
            await self._held.is_let_go.wait()
        return await self._connection.cursor(query, *values)


class ChangingCatalog:
    """A catalog that changes at random."""

    def __init__(self, catalog: Catalog, chance: Random) -> None:
        self._catalog = catalog
        self._chance = chance
        self._keys: dict[IndexedNoun, list[int]] = {noun: [] for noun in INSERTS}

    async def insert(self, noun: IndexedNoun) -> None:
        async with self._catalog.write() as write:
            key = await write.connection.fetchval(INSERTS[noun], SystemIds().make())
            write.touch(noun, key)
        self._keys[noun].append(key)

    async def assign(self) -> None:
        placement, banner, campaign = map(
            self.choose, (IndexedNoun.PLACEMENT, IndexedNoun.BANNER, IndexedNoun.CAMPAIGN)
        )
        async with self._catalog.write() as write:
            if self._chance.random() < 1 / 3:
                await write.connection.execute(ADD_CREATIVE, campaign, banner)
                write.touch(IndexedNoun.CAMPAIGN, campaign)
            else:
                await write.connection.execute(LINK, campaign, placement)
                await write.connection.execute(ASSIGN, campaign, placement, banner)
                write.touch(IndexedNoun.PLACEMENT, placement)

    async def change(self) -> None:
        match self._chance.randrange(8):
            case 0:
                await self.insert(self._chance.choice(list(INSERTS)))
            case 1 | 2:
                await self.assign()
            case _:
                noun, statement = self._chance.choice(CHANGES)
                await self.change_one(noun, self.choose(noun), statement)

    async def change_one(self, noun: IndexedNoun, key: int, statement: str) -> None:
        async with self._catalog.write() as write:
            await write.connection.execute(statement, key)
            write.touch(noun, key)

    def choose(self, noun: IndexedNoun) -> int:
        return self._chance.choice(self._keys[noun])

    async def fill(self) -> None:
        for noun in INSERTS:
            for _ in range(5):
                await self.insert(noun)
        for _ in range(15):
            await self.assign()


def a_chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - seeded, so that runs repeat


def list_available(refresher: IndexRefresher) -> Mapping[int, list[int]]:
    now = SystemClock().now()
    return {
        key: refresher.states.get(placement, now).available
        for key, placement in refresher.current.by_key.items()
    }


@pytest.mark.parametrize("seed", range(12))
async def test_an_index_that_was_rebuilt_while_the_catalog_changed_equals_one_built_from_scratch(
    pool: Pool, valkey: Valkey, seed: int
) -> None:
    chance = a_chance(seed)
    catalog = ChangingCatalog(Catalog(pool, valkey), chance)
    await catalog.fill()
    held = HeldPool(pool, READS[seed % len(READS)].everything)
    versions: list[int] = []
    excluded: dict[int, str | None] = {}

    def note(index: Index) -> None:
        versions.append(index.version)

    def exclude_some() -> None:
        key = catalog.choose(IndexedNoun.CAMPAIGN)
        excluded[key] = chance.choice(["budget", None])
        refresher.states.mark_changed({key: excluded[key]})

    async def change_at_random() -> None:
        for _ in range(chance.randrange(8)):
            await catalog.change()
            exclude_some()
            if chance.random() < 1 / 2:
                await refresher.refresh()

    refresher = IndexRefresher(cast("Pool", held), valkey, SystemClock(), swapped=note)
    await refresher.refresh()
    for _ in range(3):
        await change_at_random()
        held.hold()
        async with asyncio.TaskGroup() as group:
            group.create_task(refresher.rebuild())
            await held.is_reached.wait()
            await change_at_random()
            held.is_let_go.set()
            await change_at_random()
        await refresher.refresh()
        exclude_some()

        scratch = IndexRefresher(pool, valkey, SystemClock())
        scratch.states.mark_changed(excluded)
        await scratch.refresh()
        assert refresher.current == scratch.current
        assert list_available(refresher) == list_available(scratch)
    assert versions == sorted(versions)


async def test_a_change_does_not_wait_for_a_rebuild(
    pool: Pool, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = ChangingCatalog(Catalog(pool, valkey), a_chance(1))
    await catalog.fill()
    held = HeldPool(pool, store.BANNER_IDS.everything)
    refresher = IndexRefresher(cast("Pool", held), valkey, SystemClock())
    await refresher.refresh()
    before = refresher.current
    held.hold()
    monkeypatch.setattr(index_refresh, "REBUILD_AFTER", timedelta())

    async with asyncio.TaskGroup() as group:
        running = group.create_task(refresher.run())
        await held.is_reached.wait()
        await catalog.insert(IndexedNoun.PLACEMENT)

        await eventually(lambda: refresher.version == before.version + 1, seconds=30)
        running.cancel()

    assert len(refresher.current.by_key) == len(before.by_key) + 1


async def test_a_rebuild_of_a_catalog_that_was_replaced_meanwhile_is_not_used(
    pool: Pool, valkey: Valkey
) -> None:
    catalog = ChangingCatalog(Catalog(pool, valkey), a_chance(1))
    await catalog.fill()
    held = HeldPool(pool, store.BANNER_IDS.everything)
    refresher = IndexRefresher(cast("Pool", held), valkey, SystemClock())
    await refresher.refresh()
    held.hold()

    async with asyncio.TaskGroup() as group:
        group.create_task(refresher.rebuild())
        await held.is_reached.wait()
        for table in ("banner_assignments", "campaign_placements", "placements", "catalog_changes"):
            await pool.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        await pool.execute("UPDATE catalog_version SET version = 0")
        refreshing = group.create_task(refresher.refresh())
        held.is_let_go.set()
        await refreshing

    assert (refresher.version, dict(refresher.current.by_slug)) == (0, {})


async def test_an_unchanged_market_stays_the_same_object_after_a_rebuild(pool: Pool, valkey: Valkey) -> None:
    catalog = ChangingCatalog(Catalog(pool, valkey), a_chance(1))
    await catalog.fill()
    placement = catalog.choose(IndexedNoun.PLACEMENT)
    await catalog.change_one(
        IndexedNoun.PLACEMENT, placement, "UPDATE placements SET delivery = 'auction' WHERE id = $1"
    )
    refresher = IndexRefresher(pool, valkey, SystemClock())
    await refresher.refresh()
    [(kind, before)] = refresher.current.markets.items()

    await refresher.rebuild()

    assert refresher.current.markets[kind] is before, "its top bids need not be collected again"
