"""Pages in the memory of a delivery process: read when a site is asked for, then kept up to date."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from adloom.core.ids import SiteId, SystemIds
from adloom.market.shortlist.table import NO_SHORTLISTS, ShortlistTable
from adloom.pages.follow import store
from adloom.pages.follow.page_table import PageState, PageTable
from adloom.pages.notice import PAGE_NOTICES, PageNotice, publish_page_notice
from adloom.runtime.loops import compute_wait
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.site_tables import (
    CHECK_SECONDS,
    SITE_PAGES_MIN,
    PageLoader,
    PageTableSource,
    TableLoader,
)
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Delivery
from simulation.faults import NO_FAULTS, Faults, Host
from simulation.loop import Trace, make_random, run
from simulation.valkey import ValkeyServer, make_valkey
from tests.support.eventually import eventually
from tests.support.pages import insert_site, write_page
from tests.support.rows import a_site_row, a_snapshot


class CountingSource(PageTableSource):
    """Counts how often the versions of all sites are read."""

    checks = 0

    async def read_versions(self, site_ids: Sequence[SiteId]) -> dict[SiteId, int]:
        self.checks += 1
        return await super().read_versions(site_ids)


NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PAGE = "example.com/a"


@pytest.fixture
async def site_id(pool: Pool) -> SiteId:
    site_id = await insert_site(pool, "example.com")
    await write_page(pool, site_id, PAGE, at=NOON)
    return site_id


@pytest.fixture
async def loader(pool: Pool, valkey: Valkey) -> AsyncGenerator[TableLoader[PageTable]]:
    async with running(PageLoader(pool, valkey)) as loader:
        yield loader


@asynccontextmanager
async def running(loader: TableLoader[PageTable]) -> AsyncGenerator[TableLoader[PageTable]]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(loader.run(stop))
        yield loader
        stop.set()


def urls(loader: TableLoader[PageTable], site_id: SiteId) -> set[str]:
    table = loader.find(site_id)
    return set() if table is None else set(table.entries)


async def test_the_first_request_of_a_site_is_not_kept_waiting_and_the_next_one_knows(
    loader: TableLoader[PageTable], site_id: SiteId
) -> None:
    assert loader.find(site_id) is None

    await eventually(lambda: loader.find(site_id) is not None, seconds=30)
    table = loader.find(site_id)
    assert table is not None
    assert table.find_state(PAGE, NOON) is PageState.KNOWN


async def test_a_request_may_wait_for_the_pages_of_a_site(
    loader: TableLoader[PageTable], site_id: SiteId
) -> None:
    table = await loader.wait_for(site_id, seconds_max=30)

    assert table is not None
    assert set(table.entries) == {PAGE}


async def test_a_notice_brings_a_change_at_once(site_id: SiteId, pool: Pool, valkey: Valkey) -> None:
    async with running(PageLoader(pool, valkey, check_seconds=60)) as loader:
        await loader.wait_for(site_id, seconds_max=30)
        await eventually_subscribed(valkey)

        await write_page(pool, site_id, "example.com/b", at=NOON)
        version = (await store.read_versions(pool))[site_id].newest
        await publish_page_notice(valkey, PageNotice(site_id, version))

        await eventually(lambda: "example.com/b" in urls(loader, site_id), seconds=30)


async def test_a_notice_reads_the_site_that_it_names_and_no_other(
    site_id: SiteId, pool: Pool, valkey: Valkey
) -> None:
    source = CountingSource(pool)
    async with running(TableLoader(source, valkey, check_seconds=1_000_000)) as loader:
        for one in (site_id, await insert_site(pool, "second.example")):
            await loader.wait_for(one, seconds_max=30)
        await eventually_subscribed(valkey)
        await asyncio.sleep(0.1)  # Once it listens, it looks at all sites.
        before = source.checks

        await write_page(pool, site_id, "example.com/b", at=NOON)
        version = (await store.read_versions(pool))[site_id].newest
        await publish_page_notice(valkey, PageNotice(site_id, version))

        await eventually(lambda: "example.com/b" in urls(loader, site_id), seconds=30)
        assert source.checks == before


async def test_without_a_notice_a_change_is_known_within_two_seconds(
    loader: TableLoader[PageTable], site_id: SiteId, pool: Pool
) -> None:
    assert CHECK_SECONDS <= 2
    await loader.wait_for(site_id, seconds_max=30)

    await write_page(pool, site_id, "example.com/b", at=NOON)

    await eventually(lambda: "example.com/b" in urls(loader, site_id), seconds=30)


class TimedSource:
    """Notes when the versions of all sites are read."""

    channel = "sites"

    def __init__(self) -> None:
        self.checked_at: list[float] = []

    def read_notice(self, message: bytes) -> tuple[SiteId, int]:
        raise AssertionError(message)

    async def read(self, site_id: SiteId) -> ShortlistTable:
        del site_id
        return NO_SHORTLISTS

    async def read_versions(self, site_ids: Sequence[SiteId]) -> dict[SiteId, int]:
        self.checked_at.append(asyncio.get_running_loop().time())
        return dict.fromkeys(site_ids, 0)

    async def read_newer(self, site_id: SiteId, table: ShortlistTable) -> ShortlistTable:
        del site_id
        return table


def test_sites_are_checked_every_two_seconds_also_where_another_is_asked_for_just_before() -> None:
    source = TimedSource()

    async def ask() -> None:
        server = ValkeyServer(Faults(NO_FAULTS, make_random(1, "faults"), Trace()))
        loader, ids, stop = TableLoader(source, make_valkey(server, Host())), SystemIds(), asyncio.Event()
        running = asyncio.ensure_future(loader.run(stop))
        for _ in range(20):
            loader.find(SiteId(ids.make()))
            await asyncio.sleep(compute_wait(CHECK_SECONDS) % CHECK_SECONDS + CHECK_SECONDS - 0.1)
        stop.set()
        await running

    run(1, ask())

    gaps = [later - earlier for earlier, later in pairwise(source.checked_at)]
    assert len(gaps) > 10
    assert max(gaps) < CHECK_SECONDS * 1.1 + 0.1


async def test_what_is_kept_up_to_date_equals_what_is_read_anew(
    site_id: SiteId, pool: Pool, valkey: Valkey
) -> None:
    loader = PageLoader(pool, valkey)
    loader.find(site_id)
    for action in ("b", "c", "-b", "a", "-a", "a"):
        if action.startswith("-"):
            await pool.execute("DELETE FROM site_pages WHERE url = $1", f"example.com/{action[1:]}")
        else:
            await write_page(pool, site_id, f"example.com/{action}", at=NOON)

        await loader.refresh()

        table = loader.find(site_id)
        assert table is not None
        assert table.entries == (await store.read_table(pool, site_id)).entries


async def test_a_table_that_a_request_holds_does_not_change(
    site_id: SiteId, pool: Pool, valkey: Valkey
) -> None:
    loader = PageLoader(pool, valkey)
    loader.find(site_id)
    await loader.refresh()
    held = loader.find(site_id)

    await write_page(pool, site_id, "example.com/b", at=NOON)
    await loader.refresh()

    assert held is not None
    assert set(held.entries) == {PAGE}
    assert urls(loader, site_id) == {PAGE, "example.com/b"}


async def test_the_sites_that_were_not_asked_for_the_longest_make_room(
    site_id: SiteId, pool: Pool, valkey: Valkey
) -> None:
    loader = PageLoader(pool, valkey, pages_max=2 * SITE_PAGES_MIN)
    second, third = await insert_site(pool, "second.example"), await insert_site(pool, "third.example")
    for one in (site_id, second):
        loader.find(one)
        await loader.refresh()
    loader.find(site_id)

    loader.find(third)
    await loader.refresh()

    assert loader.sites == 2
    assert loader.find(second) is None
    assert loader.find(site_id) is not None
    assert loader.find(third) is not None


async def test_a_site_that_is_gone_is_forgotten(site_id: SiteId, pool: Pool, valkey: Valkey) -> None:
    loader = PageLoader(pool, valkey)
    loader.find(site_id)
    await loader.refresh()

    await pool.execute("DELETE FROM sites")
    await loader.refresh()

    assert loader.sites == 0


async def test_sites_with_contextual_placements_are_read_before_anybody_asks(
    site_id: SiteId, pool: Pool, valkey: Valkey
) -> None:
    loader = PageLoader(pool, valkey)
    without = SiteId(SystemIds().make())
    sites = [a_site_row(key=7, id=site_id), a_site_row(key=8, id=without, domain="other.example")]

    loader.prepare(compile_index(a_snapshot(sites=sites, delivery=Delivery.CONTEXTUAL, site_key=7)))
    await loader.refresh()

    assert (loader.sites, loader.pages, loader.loads) == (1, 1, 1)


async def test_without_a_database_requests_go_on(pool: Pool, valkey: Valkey, site_id: SiteId) -> None:
    loader = PageLoader(pool, valkey)
    loader.find(site_id)
    await loader.refresh()
    await pool.close()

    async with running(loader):
        assert await loader.wait_for(SiteId(SystemIds().make()), seconds_max=30) is None
        assert urls(loader, site_id) == {PAGE}


async def eventually_subscribed(valkey: Valkey) -> None:
    async with asyncio.timeout(60):
        while (await valkey.pubsub_numsub(PAGE_NOTICES))[0][1] == 0:  # noqa: ASYNC110 - the server sends no notice of it
            await asyncio.sleep(0.005)
