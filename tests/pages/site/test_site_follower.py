"""Site actors in a worker: told what changes, rebuilt from PostgreSQL, and heard by whoever sells."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
import pytest

from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId, SystemIds
from adloom.pages.site.follower import NEWS_CHANNEL, SiteFollower, SiteReader
from adloom.pages.site.messages import (
    PageCategoriesClassified,
    PagesListed,
    PagesWithdrawn,
    SiteConfigured,
    SlotConfig,
    make_site_address,
)
from adloom.pages.site.step import SiteKind
from adloom.pages.site.worker import make_site_actors, share_site_actors
from adloom.resource.changes import Catalog, IndexedNoun
from adloom.runtime.actors.actor import Address, find_shard
from adloom.runtime.actors.nats.link import NatsLink
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Subscription, Valkey
from tests.support.eventually import eventually
from tests.support.pages import insert_site, write_page

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
INSERT_BROKEN = """
    INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at)
    VALUES ('site', $1, $2, 1, 1, 'broken', now())
"""
INSERT_SLOT = """
    INSERT INTO placements (public_id, slug, label, layout_type, delivery, recommended_width, recommended_height, site_id)
    SELECT $1, 'top', 'Top', 'full_static', 'contextual', 300, 250, id FROM sites WHERE public_id = $2
    RETURNING id
"""


@pytest.fixture
async def site_id(pool: Pool) -> SiteId:
    return await insert_site(pool, "example.com")


class Heard:
    """What is told on the channel of a site."""

    def __init__(self) -> None:
        self.news: list[msgspec.Struct] = []
        self.began = asyncio.Event()

    @property
    def pages(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(one.url, one.slots) for one in self.news if isinstance(one, PageCategoriesClassified)]

    async def until(self, is_so: Callable[[], bool]) -> None:
        await eventually(is_so, seconds=30)


News: TypeAlias = SiteConfigured | PageCategoriesClassified | PagesWithdrawn | PagesListed


@asynccontextmanager
async def hear(valkey: Valkey, site_id: SiteId) -> AsyncGenerator[Heard]:
    heard, stop = Heard(), asyncio.Event()
    subscription = Subscription(
        valkey,
        NEWS_CHANNEL.format(site_id=site_id),
        on_message=lambda message: heard.news.extend(msgspec.msgpack.decode(message, type=list[News])),
        on_start=heard.began.set,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(subscription.run(stop))
        await heard.began.wait()
        yield heard
        stop.set()


@pytest.fixture
async def heard(valkey: Valkey, site_id: SiteId) -> AsyncGenerator[Heard]:
    async with hear(valkey, site_id) as heard:
        yield heard


RunWorker: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture(params=["process", "nats"])
def a_worker(request: pytest.FixtureRequest, pool: Pool, valkey: Valkey, nats_url: str) -> RunWorker:
    """Run the site actors in this process, or by NATS as one of several workers would."""

    @asynccontextmanager
    async def run() -> AsyncGenerator[None]:
        stop = asyncio.Event()
        if request.param == "process":
            actors = make_site_actors(pool, valkey, SystemClock())
            runs = [actors.host.run, actors.follower.run]
        else:
            link = NatsLink(nats_url, [SiteKind()], SystemIds(), name="worker")
            shared = share_site_actors(link.sender, pool, valkey, SystemClock(), shard_pool=pool)
            link.add_host([shared.family], pool, SystemClock())
            runs = [link.run, shared.follower.run]
        async with asyncio.TaskGroup() as group:
            for one in runs:
                group.create_task(one(stop))
            yield
            stop.set()

    return run


async def insert_slot(catalog: Catalog, site_id: SiteId) -> None:
    async with catalog.write() as write:
        write.touch(
            IndexedNoun.PLACEMENT,
            await write.connection.fetchval(INSERT_SLOT, SystemIds().make(), site_id),
        )


async def test_a_classified_page_is_told_with_the_slots_of_its_site(
    pool: Pool, valkey: Valkey, site_id: SiteId, heard: Heard, a_worker: RunWorker
) -> None:
    await insert_slot(Catalog(pool, valkey), site_id)

    async with a_worker():
        await write_page(pool, site_id, "example.com/a", at=NOON)

        await heard.until(lambda: heard.pages == [("example.com/a", ("top",))])


async def test_a_change_of_the_catalog_is_told(
    pool: Pool, valkey: Valkey, site_id: SiteId, heard: Heard, a_worker: RunWorker
) -> None:
    async with a_worker():
        await write_page(pool, site_id, "example.com/a", at=NOON)
        await heard.until(lambda: len(heard.pages) == 1)

        await insert_slot(Catalog(pool, valkey), site_id)

        def has_slot() -> bool:
            configs = [one.config for one in heard.news if isinstance(one, SiteConfigured)]
            return configs[-1] is not None and configs[-1].slots == (SlotConfig("top", 300, 250),)

        await heard.until(has_slot)


async def test_a_removed_page_is_told(pool: Pool, site_id: SiteId, heard: Heard, a_worker: RunWorker) -> None:
    async with a_worker():
        for url in ("example.com/a", "example.com/b"):
            await write_page(pool, site_id, url, at=NOON)
        await heard.until(lambda: len(heard.pages) == 2)

        await pool.execute("DELETE FROM site_pages WHERE url = 'example.com/a'")

        def is_told() -> bool:
            """Either that it is gone, or which there are."""
            gone = [one.urls for one in heard.news if isinstance(one, PagesWithdrawn)]
            left = [one.urls for one in heard.news if isinstance(one, PagesListed)]
            return gone == [("example.com/a",)] or left[-1:] == [("example.com/b",)]

        await heard.until(is_told)


async def test_a_site_whose_state_cannot_be_read_keeps_no_other_from_its_news(
    pool: Pool, valkey: Valkey, site_id: SiteId, a_worker: RunWorker
) -> None:
    other = await insert_site(pool, "other.example")
    for broken, domain in (
        (site_id, "example.com"),
        (await insert_site(pool, "third.example"), "third.example"),
    ):
        address = make_site_address(broken)
        await pool.execute(INSERT_BROKEN, address.key, find_shard(address))
        await write_page(pool, broken, f"{domain}/a", at=NOON)

    async with hear(valkey, other) as heard, a_worker():
        await write_page(pool, other, "other.example/a", at=NOON)
        await heard.until(lambda: heard.pages == [("other.example/a", ())])
        await insert_slot(Catalog(pool, valkey), other)
        await heard.until(lambda: isinstance(heard.news[-1], SiteConfigured))


class HostWithStuckActor:
    """Never gets an answer of the site that is asked first."""

    def __init__(self) -> None:
        self.stuck: Address | None = None
        self.told: list[Address] = []

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> None:
        del message, seconds_max
        self.stuck = self.stuck or address
        if address == self.stuck:
            raise TimeoutError
        self.told.append(address)


async def test_a_site_that_does_not_answer_keeps_no_other_from_its_pages(pool: Pool, valkey: Valkey) -> None:
    names = ("one.example", "two.example", "three.example")
    site_ids = [await insert_site(pool, name) for name in names]
    for site_id, name in zip(site_ids, names, strict=True):
        await write_page(pool, site_id, f"{name}/a", at=NOON)
    host = HostWithStuckActor()
    follower = SiteFollower(pool, valkey, SiteReader(pool), host)

    for _ in range(2):
        with pytest.raises(UnavailableError):  # What is still to be told is told at the next poll.
            await follower.poll()

    assert host.stuck is not None
    assert sorted([*host.told, host.stuck]) == sorted(map(make_site_address, site_ids))


async def test_another_worker_goes_on_and_tells_only_what_changed_meanwhile(
    pool: Pool, site_id: SiteId, heard: Heard, a_worker: RunWorker
) -> None:
    async with a_worker():
        await write_page(pool, site_id, "example.com/a", at=NOON)
        await heard.until(lambda: len(heard.pages) == 1)
    await write_page(pool, site_id, "example.com/b", at=NOON)

    async with a_worker():
        await heard.until(lambda: [url for url, _ in heard.pages] == ["example.com/a", "example.com/b"])


async def test_without_any_state_everything_is_rebuilt_from_the_tables(
    pool: Pool, valkey: Valkey, site_id: SiteId, heard: Heard, a_worker: RunWorker
) -> None:
    async with a_worker():
        await write_page(pool, site_id, "example.com/a", at=NOON)
        await heard.until(lambda: len(heard.pages) == 1)
    await pool.execute("DELETE FROM brain_states")
    await valkey.flushall()

    async with a_worker():
        await heard.until(lambda: [url for url, _ in heard.pages] == ["example.com/a"] * 2)


async def test_the_stored_state_of_a_site_is_small(
    pool: Pool, site_id: SiteId, heard: Heard, a_worker: RunWorker
) -> None:
    for number in range(300):
        await write_page(pool, site_id, f"example.com/{number}", at=NOON)

    async with a_worker():
        await heard.until(lambda: len(heard.pages) == 300)

    assert await pool.fetchval("SELECT max(length(state)) FROM brain_states WHERE kind = 'site'") < 1_000
