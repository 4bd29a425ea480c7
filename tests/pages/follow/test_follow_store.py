"""Pages read from PostgreSQL: reading on from a version gives what reading everything gives."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from adloom.core.ids import SiteId, SystemIds
from adloom.pages.follow import store
from adloom.pages.follow.page_table import NO_PAGES, PageTable
from adloom.runtime.postgres import Connection, Pool
from tests.support.pages import insert_site, write_page

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
async def site_id(pool: Pool) -> SiteId:
    return await insert_site(pool, "example.com")


async def follow(pool: Pool, site_id: SiteId, table: PageTable) -> PageTable:
    changes = await store.read_changes(pool, site_id, table.version)
    return await store.read_table(pool, site_id) if changes is None else table.with_changes(changes)


async def test_reading_on_equals_reading_everything(pool: Pool, site_id: SiteId) -> None:
    table = await follow(pool, site_id, NO_PAGES)
    for url, at in (("a", NOON), ("b", NOON), ("a", NOON + timedelta(hours=1)), ("c", None), ("c", NOON)):
        await write_page(pool, site_id, f"example.com/{url}", at=at)

        table = await follow(pool, site_id, table)

        assert table.entries == (await store.read_table(pool, site_id)).entries
    assert set(table.entries) == {"example.com/a", "example.com/b", "example.com/c"}


@pytest.mark.parametrize("rows", [2, 3, 4, 200])
async def test_many_changes_are_read_as_few_are(
    rows: int, pool: Pool, site_id: SiteId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "ROWS_A_BATCH", rows)
    for number in range(3):
        await write_page(pool, site_id, f"example.com/{number}", at=NOON)

    changes = await store.read_changes(pool, site_id, 0)

    assert changes is not None
    assert [one.url for one in changes] == [f"example.com/{number}" for number in range(3)]
    assert changes == list((await store.read_table(pool, site_id)).entries.values())
    assert await store.read_changes(pool, SiteId(SystemIds().make()), 0) is None


async def test_a_removed_page_is_not_followed_any_more(pool: Pool, site_id: SiteId) -> None:
    await write_page(pool, site_id, "example.com/a", at=NOON)
    await write_page(pool, site_id, "example.com/b", at=NOON)
    table = await follow(pool, site_id, NO_PAGES)

    await pool.execute("DELETE FROM site_pages WHERE url = 'example.com/b'")

    assert await store.read_changes(pool, site_id, table.version) is None
    table = await follow(pool, site_id, table)
    assert set(table.entries) == {"example.com/a"}
    assert await store.read_changes(pool, site_id, table.version) == []


async def test_versions_name_the_last_change_and_the_last_removal(pool: Pool, site_id: SiteId) -> None:
    other = await insert_site(pool, "other.example")
    await write_page(pool, site_id, "example.com/a", at=NOON)
    changed = (await store.read_versions(pool))[site_id]
    await pool.execute("DELETE FROM site_pages")

    assert changed.changed > 0
    assert changed.removed == 0
    assert (await store.read_versions(pool))[site_id].removed > changed.changed
    assert (await store.read_versions(pool, [other, SystemIds().make()])) == {other: store.SiteVersions()}


async def test_a_lower_version_is_never_committed_later(pool: Pool, site_id: SiteId) -> None:
    """Whoever reads on from the higher one would never see it."""

    async def write_slowly(connection: Connection, began: asyncio.Event) -> None:
        async with connection.transaction():
            await write_page(connection, site_id, "example.com/slow", at=NOON)
            began.set()
            await asyncio.sleep(0.2)

    began = asyncio.Event()
    async with pool.acquire() as slow, asyncio.TaskGroup() as group:
        group.create_task(write_slowly(slow, began))
        await began.wait()
        await write_page(pool, site_id, "example.com/fast", at=NOON)
        table = await store.read_table(pool, site_id)

        assert set(table.entries) == {"example.com/slow", "example.com/fast"}
        assert table.entries["example.com/slow"].version < table.entries["example.com/fast"].version


async def test_only_the_newest_pages_are_read(pool: Pool, site_id: SiteId) -> None:
    for number in range(5):
        await write_page(pool, site_id, f"example.com/{number}", at=NOON + timedelta(minutes=number))

    table = await store.read_table(pool, site_id, pages_max=2)

    assert set(table.entries) == {"example.com/3", "example.com/4"}


async def test_a_site_can_be_removed_with_its_pages(pool: Pool, site_id: SiteId) -> None:
    await write_page(pool, site_id, "example.com/a", at=NOON)

    await pool.execute("DELETE FROM sites WHERE public_id = $1", site_id)

    assert await store.read_versions(pool) == {}
