"""The catalog's version: it has the order of the commits."""

import asyncio

import pytest

from adloom.resource.changes import MARKS, NOTICE_CHANNEL, Catalog, IndexedNoun, read_marks_together
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey, open_valkey


@pytest.fixture
def catalog(pool: Pool, valkey: Valkey) -> Catalog:
    return Catalog(pool, valkey)


async def test_a_write_raises_the_version_once(catalog: Catalog, pool: Pool) -> None:
    async with catalog.write() as write:
        write.touch(IndexedNoun.PLACEMENT, 1)
        write.touch(IndexedNoun.BANNER, 2)

    assert await pool.fetchval("SELECT version FROM catalog_version") == 1
    rows = await pool.fetch("SELECT version, noun, noun_key FROM catalog_changes ORDER BY noun")
    assert [tuple(row) for row in rows] == [(1, "banner", 2), (1, "placement", 1)]


async def test_those_who_look_at_once_ask_once_and_see_what_was_committed_before(
    catalog: Catalog, pool: Pool
) -> None:
    asked: list[str] = []
    async with pool.acquire() as connection:
        connection.add_query_logger(lambda one: asked.append(one.query))

    before = await asyncio.gather(*(read_marks_together(pool) for _ in range(5)))
    async with catalog.write() as write:
        write.touch(IndexedNoun.PLACEMENT, 1)
    after = await read_marks_together(pool)

    assert asked.count(MARKS) == 2
    assert {marks.catalog for marks in before} == {0}
    assert after.catalog == 1
    assert after.cursors == {}


async def test_a_write_that_fails_changes_nothing(catalog: Catalog, pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError):
        async with catalog.write() as write:
            write.touch(IndexedNoun.PLACEMENT, 1)
            raise ZeroDivisionError

    assert await pool.fetchval("SELECT version FROM catalog_version") == 0


async def test_a_write_that_touches_nothing_leaves_the_version(catalog: Catalog, pool: Pool) -> None:
    async with catalog.write():
        pass

    assert await pool.fetchval("SELECT version FROM catalog_version") == 0


async def test_the_indexes_are_notified_after_the_commit(catalog: Catalog, valkey: Valkey) -> None:
    async with valkey.pubsub() as listener:
        await listener.subscribe(NOTICE_CHANNEL)
        await listener.get_message(timeout=30)

        async with catalog.write() as write:
            write.touch(IndexedNoun.CAMPAIGN, 7)

        message = await listener.get_message(ignore_subscribe_messages=True, timeout=30)  # pyright: ignore[reportUnknownVariableType] - redis-py leaves it open
    assert message is not None
    assert message["data"] == b"1"


async def test_a_notice_is_sent_although_the_idle_connection_was_killed(
    catalog: Catalog, valkey: Valkey, redis_url: str
) -> None:
    await valkey.ping()
    async with open_valkey(redis_url) as other, other.pubsub() as listener:
        await listener.subscribe(NOTICE_CHANNEL)
        await listener.get_message(timeout=30)
        await other.client_kill_filter(_type="normal", skipme=True)

        async with catalog.write() as write:
            write.touch(IndexedNoun.CAMPAIGN, 7)

        message = await listener.get_message(ignore_subscribe_messages=True, timeout=30)  # pyright: ignore[reportUnknownVariableType] - redis-py leaves it open
    assert message is not None


async def test_concurrent_writes_get_versions_without_gaps(catalog: Catalog, pool: Pool) -> None:
    async def write_one(key: int) -> None:
        async with catalog.write() as write:
            write.touch(IndexedNoun.BANNER, key)

    async with asyncio.TaskGroup() as group:
        for key in range(20):
            group.create_task(write_one(key))

    versions = [
        row["version"] for row in await pool.fetch("SELECT version FROM catalog_changes ORDER BY version")
    ]
    assert versions == list(range(1, 21))
