"""The market on PostgreSQL: what its actors recorded is there again after any restart."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from adloom.budgets.campaign.demand import DIRECTORY, CampaignReady
from adloom.budgets.messages import CheckClock
from adloom.budgets.worker import WorkerIdentity
from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.market import follower
from adloom.market.auctioneer.state import ConfigureAuctions, PagesClassified
from adloom.market.kinds import make_kinds
from adloom.market.messages import AllDemand, DemandVersions, LoadDemand, LoadResults, RecordResults
from adloom.market.ranker import FLUSH_AFTER
from adloom.market.results.store import clean
from adloom.market.routing import make_auctioneer_address, make_bidder_address, make_ranker_address
from adloom.market.shared_workers import MarketRefresh, SharedMarketFollower, SharedMarketTables
from adloom.market.shortlist.model import PageShortlists, Shortlist
from adloom.market.shortlist.store import remove_expired
from adloom.market.store import MarketTables, MarketTerm, MarketWriter
from adloom.market.weights import FORGOTTEN_AFTER
from adloom.market.worker import OWNER_KEY, NoticeBroadcaster, make_market
from adloom.runtime.actors.actor import SHARDS, Address, FencedOutError, find_shard
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from adloom.runtime.random import make_system_chance
from adloom.runtime.valkey import Valkey
from tests.market.builders import a_demand
from tests.support.eventually import becomes, eventually
from tests.support.pages import insert_site, write_page

NOW = SystemClock().now


@asynccontextmanager
async def a_worker(pool: Pool, valkey: Valkey) -> AsyncGenerator[ActorHost]:
    """The market's actors, until the worker dies: nothing is said to them then."""
    host = ActorHost(
        make_kinds(),
        PostgresStateStore(pool, MarketWriter(), SystemClock()),
        introduction=MarketTables(pool),
        audience=NoticeBroadcaster(valkey),
        clock=SystemClock(),
        chance=make_system_chance(),
    )
    running = asyncio.create_task(host.run(asyncio.Event()))
    await eventually(lambda: host.is_open, seconds=30)
    yield host
    running.cancel()
    await asyncio.wait([running])


async def first_messages(pool: Pool, *addresses: object) -> list[object]:
    found = await MarketTables(pool).load_first_messages(addresses)  # type: ignore[arg-type]
    return [message for address in addresses for message in found.get(address, ())]  # type: ignore[call-overload]


async def test_demand_and_its_versions_survive_a_killed_worker(pool: Pool, valkey: Valkey) -> None:
    demand = a_demand(1, "483", "539")
    async with a_worker(pool, valkey) as host:
        await host.send_durably(DIRECTORY, CampaignReady(demand))

    [loaded, seed] = await first_messages(pool, DIRECTORY, make_bidder_address("539", 3))

    assert loaded == LoadDemand((demand,), {"483": 1, "539": 1})
    assert (seed.version, seed.campaigns) == (1, (demand,))  # type: ignore[attr-defined]


async def test_weights_survive_a_killed_worker(pool: Pool, valkey: Valkey) -> None:
    address = make_ranker_address("483", "*")
    async with a_worker(pool, valkey) as host:
        at = NOW() - FLUSH_AFTER
        await host.send_durably(address, RecordResults(100, 3, at, 1))
        await eventually_recorded(pool)

    [loaded] = await first_messages(pool, address)

    assert isinstance(loaded, LoadResults)
    assert (loaded.impressions, loaded.clicks) == (100, 3)


async def test_a_category_keeps_the_sites_that_were_seen_last_and_none_for_longer_than_two_weeks(
    pool: Pool,
) -> None:
    now = NOW()
    rows = [("*", 20), ("a", 15), ("b", 3), ("c", 2), ("d", 1), ("*", 0)]
    for number, (site, days) in enumerate(rows):
        category = "483" if number else "210"
        await pool.execute(
            "INSERT INTO category_results (category, site, impressions, clicks, at, through) VALUES ($1, $2, 1, 0, $3, 1)",
            category,
            site,
            now - timedelta(days=days),
        )

    await clean(pool, now=now, forgotten_after=FORGOTTEN_AFTER, sites_max=3)
    assert await kept_sites(pool) == ["*", "b", "c", "d"]
    await clean(pool, now=now, forgotten_after=FORGOTTEN_AFTER, sites_max=2)
    assert await kept_sites(pool) == ["*", "c", "d"]
    assert await pool.fetchval("SELECT count(*) FROM category_results WHERE category = '210'") == 1, (
        "of all sites together"
    )


async def kept_sites(pool: Pool) -> list[str]:
    rows = await pool.fetch("SELECT site FROM category_results WHERE category = '483' ORDER BY 1")
    return [row["site"] for row in rows]


async def eventually_recorded(pool: Pool) -> None:
    async with asyncio.timeout(60):
        while not await pool.fetchval("SELECT count(*) FROM category_results"):  # noqa: ASYNC110 - a table sends no notice
            await asyncio.sleep(0.1)


@pytest.fixture
async def site_id(pool: Pool) -> SiteId:
    site_id = await insert_site(pool, "example.com")
    await write_page(pool, site_id, "example.com/a", at=NOW())
    await write_page(pool, site_id, "example.com/old", at=NOW() - timedelta(hours=49))
    return site_id


async def test_pages_are_there_again_and_expired_ones_are_not(pool: Pool, site_id: SiteId) -> None:
    """Reading and cleaning go by one expiry: what is restored is not cleaned, what is cleaned is not restored."""
    [*_, pages] = await first_messages(pool, make_auctioneer_address(site_id))

    assert [page.url for page in pages.pages] == ["example.com/a"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_fenced", [True, False], ids=["with a term", "without"])
async def test_a_worker_that_wakes_late_overwrites_no_newer_shortlist(
    pool: Pool, site_id: SiteId, *, is_fenced: bool
) -> None:
    """By its clock the late one is the newer: without terms it would win."""
    terms = MarketTerm(), MarketTerm()
    late, leading = (
        PostgresStateStore(pool, MarketWriter(term if is_fenced else None), SystemClock()) for term in terms
    )
    await terms[0].begin(pool)
    await late.commit([], [a_shortlist(site_id, "first")])
    await terms[1].begin(pool)
    await leading.commit([], [a_shortlist(site_id, "newer")])

    with pytest.raises(FencedOutError) if is_fenced else nullcontext():
        await late.commit([], [a_shortlist(site_id, "stale")])

    [slots] = [row[0] for row in await pool.fetch("SELECT slots FROM shortlists")]
    assert slots[0]["slot"] == ("newer" if is_fenced else "stale")


def a_shortlist(site_id: SiteId, slot: str) -> PageShortlists:
    now = NOW()
    return PageShortlists(
        site_id=site_id,
        url="example.com/a",
        version=int(now.timestamp() * 1_000_000),
        slots=(Shortlist(slot=slot, candidates=()),),
        updated_at=now,
        expires_at=now + timedelta(hours=1),
    )


async def test_shared_actors_read_what_a_message_could_not_carry(
    pool: Pool, valkey: Valkey, site_id: SiteId
) -> None:
    await pool.execute(
        """
        INSERT INTO placements (public_id, slug, label, layout_type, delivery, site_id)
        SELECT gen_random_uuid(), 'slot', 'Slot', 'sidebar_single', 'contextual', id FROM sites WHERE public_id = $1
        """,
        site_id,
    )
    await insert_site(pool, "no-slots.test")
    async with a_worker(pool, valkey) as host:
        await host.send_durably(DIRECTORY, CampaignReady(a_demand(1, "483")))
    address = make_auctioneer_address(site_id)
    tables = SharedMarketTables(pool)

    loaded = (await tables.load_first_messages([DIRECTORY]))[DIRECTORY]
    again = await MarketRefresh(pool).load_first_messages(
        [DIRECTORY, address, make_bidder_address("483", 1), make_ranker_address("483", "*")]
    )

    assert [type(one) for one in loaded] == [LoadDemand, AllDemand]
    assert set(again) == {DIRECTORY, address}
    [configured, versions] = again[address]
    assert isinstance(configured, ConfigureAuctions)
    assert versions == DemandVersions({"483": 1})
    assert set(await tables.list_woken(range(SHARDS))) == {DIRECTORY, address}
    assert await tables.list_woken([find_shard(DIRECTORY)]) == [DIRECTORY]


class LosesPages:
    """A host that keeps which pages it is told of; `lost` is the first such message."""

    def __init__(self) -> None:
        self.lost: PagesClassified | None = None
        self.told: set[str] = set()
        self.woken: list[Address] = []

    def tell(self, address: Address, message: object, *, is_fresh: bool = False) -> bool:
        del is_fresh
        if isinstance(message, CheckClock):
            self.woken.append(address)
        if isinstance(message, PagesClassified):
            if self.lost is None:
                self.lost = message
            else:
                self.told |= {page.url for page in message.pages}
        return True


@pytest.mark.parametrize("kind", [follower.MarketFollower, SharedMarketFollower])
async def test_pages_are_told_again_in_case_the_message_was_lost(
    pool: Pool, valkey: Valkey, site_id: SiteId, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(follower, "PAGES_AGAIN_SECONDS", 0.5)
    host = LosesPages()
    following = kind(pool, valkey, host)
    await write_page(pool, site_id, "example.com/known", at=NOW())
    await following.poll()
    await write_page(pool, site_id, "example.com/new", at=NOW())
    await following.poll()
    assert host.lost is not None

    async def is_told() -> bool:
        await following.poll()
        return "example.com/new" in host.told

    await becomes(is_told, seconds=8)


@pytest.mark.parametrize("kind", [follower.MarketFollower, SharedMarketFollower])
async def test_an_auctioneer_is_woken_twice_in_case_the_message_was_lost(
    pool: Pool, valkey: Valkey, site_id: SiteId, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(follower, "PAGES_AGAIN_SECONDS", 0.5)
    host = LosesPages()
    following = kind(pool, valkey, host)
    await write_page(pool, site_id, "example.com/known", at=NOW())
    auctioneer = make_auctioneer_address(site_id)

    async def is_woken_again() -> bool:
        await following.poll()
        return host.woken.count(auctioneer) >= 2

    await becomes(is_woken_again, seconds=8)


async def test_shortlists_are_removed_a_day_after_they_expired(pool: Pool, site_id: SiteId) -> None:
    for url, hours in (("long gone", 25), ("just gone", 1)):
        await pool.execute(
            """
            INSERT INTO shortlists (site_id, url, version, slots, updated_at, expires_at)
            SELECT id, $2, 1, '[]', now(), now() - $3::interval FROM sites WHERE public_id = $1
            """,
            site_id,
            url,
            timedelta(hours=hours),
        )

    await remove_expired(pool)

    assert [row[0] for row in await pool.fetch("SELECT url FROM shortlists")] == ["just gone"]


async def test_a_worker_that_was_suspended_while_another_led_for_a_moment_leads_again(
    pool: Pool, valkey: Valkey
) -> None:
    """It finds its lock free, and not that somebody else has had it."""
    first, second = (
        make_market(pool, valkey, SystemClock(), worker=WorkerIdentity(name, "1"), campaigns_max=3)
        for name in ("a", "b")
    )
    stop, ends = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(first.leader.run(stop))
        await eventually(lambda: first.host.is_open, seconds=30)
        await valkey.delete(OWNER_KEY)  # As when its lease has ended.
        leading = group.create_task(second.leader.run(ends))
        await eventually(lambda: second.host.is_open, seconds=30)
        ends.set()
        await leading

        async def is_kept() -> bool:
            try:
                await first.host.send_durably(DIRECTORY, CampaignReady(a_demand(1, "483")))
            except UnavailableError:
                return False
            return True

        await becomes(is_kept, seconds=10)
        stop.set()
