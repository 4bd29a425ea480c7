"""Budgets with the real catalog, budget actors, leases and serve routes, in one process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

from adloom.budgets.worker import WorkerIdentity, make_budget_actors
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.event import ChargedBy
from adloom.resource.changes import Catalog, IndexedNoun
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.leases.client import LeaseClient
from tests.support.answers import at_once
from tests.support.days import zone_at_noon
from tests.support.eventually import eventually

SECRET = "a-secret-of-the-tests-that-is-long-enough"
KEYS = TokenKeys(SECRET)
PAISA = 10_000

OFFERED_SECONDS_MAX = 60.0
REQUESTS_AFTERWARDS = 50
INSERT_PLACEMENT = """
    INSERT INTO placements (public_id, slug, label, layout_type, max_banners)
    VALUES ($1, $2, 'Label', 'full_slider', 20) RETURNING id
"""
INSERT_BANNER = (
    "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'T', 'https://x/') RETURNING id"
)
INSERT_CAMPAIGN = """
    INSERT INTO campaigns (public_id, name, status, bid_type, bid_amount_micros, budget_daily_paisa,
                           pacing_strategy, advertiser_id, timezone)
    VALUES ($1, 'C', 'active', $2, $3, $4, 'Accelerated', $5, $6) RETURNING id
"""
INSERT_ADVERTISER = """
    INSERT INTO advertisers (public_id, name, daily_budget_paisa, timezone) VALUES ($1, 'A', $2, $3) RETURNING id
"""
LINK = "INSERT INTO campaign_placements (campaign_id, placement_id) VALUES ($1, $2)"
ASSIGN = "INSERT INTO banner_assignments (campaign_id, placement_id, banner_id) VALUES ($1, $2, $3)"


class CampaignCatalog:
    """Writes campaigns into the catalog."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self._catalog = Catalog(pool, valkey)

    async def placement(self, slug: str = "home") -> int:
        async with self._catalog.write() as write:
            key: int = await write.connection.fetchval(INSERT_PLACEMENT, SystemIds().make(), slug)
            write.touch(IndexedNoun.PLACEMENT, key)
        return key

    async def advertiser(self, daily_paisa: int) -> int:
        async with self._catalog.write() as write:
            return await write.connection.fetchval(
                INSERT_ADVERTISER, SystemIds().make(), daily_paisa, zone_at_noon()
            )

    async def campaign(
        self,
        placement: int,
        *,
        bid_micros: int | None,
        daily_paisa: int | None,
        bid_type: str = "cpm",
        advertiser: int | None = None,
    ) -> int:
        async with self._catalog.write() as write:
            campaign: int = await write.connection.fetchval(
                INSERT_CAMPAIGN,
                SystemIds().make(),
                bid_type,
                bid_micros,
                daily_paisa,
                advertiser,
                zone_at_noon(),
            )
            banner: int = await write.connection.fetchval(INSERT_BANNER, SystemIds().make())
            await write.connection.execute(LINK, campaign, placement)
            await write.connection.execute(ASSIGN, campaign, placement, banner)
            for noun, key in (
                (IndexedNoun.CAMPAIGN, campaign),
                (IndexedNoun.BANNER, banner),
                (IndexedNoun.PLACEMENT, placement),
            ):
                write.touch(noun, key)
        return campaign

    async def change(self, campaign: int, assignment: str, *values: object) -> None:
        async with self._catalog.write() as write:
            sql = f"UPDATE campaigns SET {assignment} WHERE id = $1"  # noqa: S608 - a constant of the tests
            await write.connection.execute(sql, campaign, *values)
            write.touch(IndexedNoun.CAMPAIGN, campaign)


class DeliveryProcess:
    """The parts of a delivery process, run in this one."""

    def __init__(self, pool: Pool, valkey: Valkey, number: int) -> None:
        clock, states = SystemClock(), PlacementStates()
        self.leases = LeaseClient(valkey, states, clock, process=f"delivery-{number}")
        self.refresher = IndexRefresher(pool, valkey, clock, states=states, swapped=self.leases.update)
        self.routes = ServeRoutes(
            lambda: self.refresher.current,
            KEYS.signer,
            clock,
            SystemIds(),
            public_url="https://ads.example",
            states=states,
            leases=self.leases.leases,
        )

    def offers(self, slug: str = "home", method: bytes = b"GET") -> list[OfferToken]:
        request = FastRequest(method, b"/banners/serve/" + slug.encode(), headers=[])
        request.first_values = index_headers([])
        answer: dict[str, Any] = msgspec.json.decode(at_once(self.routes.serve(request)).body)
        return [self._token(one) for one in answer.get("banners", ())]

    def page(self, *slugs: str) -> list[OfferToken]:
        body = msgspec.json.encode({"placements": slugs})
        request = FastRequest(b"POST", b"/banners/serve", headers=[], body=body)
        request.first_values = index_headers([])
        answer: dict[str, Any] = msgspec.json.decode(at_once(self.routes.serve_page(request)).body)
        return [
            self._token(one) for result in answer["results"].values() for one in result.get("banners", ())
        ]

    def _token(self, banner: dict[str, Any]) -> OfferToken:
        token = KEYS.verify(banner["trackingToken"].encode(), now=SystemClock().now())
        assert isinstance(token, OfferToken)
        return token

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["DeliveryProcess"]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.leases.run(stop))
            refreshing = group.create_task(self.refresher.run())
            await self.refresher.wait_until_ready(seconds_max=5)
            yield self
            refreshing.cancel()
            stop.set()


@asynccontextmanager
async def running_budget_actors(pool: Pool, valkey: Valkey) -> AsyncGenerator[None]:
    """Run the budget actors of a worker."""
    worker = WorkerIdentity("worker@test", f"life-{SystemIds().make()}")
    budget_actors = make_budget_actors(pool, valkey, SystemClock(), worker=worker, hold_seconds=300)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(budget_actors.leader.run(stop))
        yield
        stop.set()


@pytest.fixture
def catalog(pool: Pool, valkey: Valkey) -> CampaignCatalog:
    return CampaignCatalog(pool, valkey)


@pytest.fixture
async def processes(pool: Pool, valkey: Valkey) -> AsyncGenerator[list[DeliveryProcess]]:
    async with running_budget_actors(pool, valkey), AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(DeliveryProcess(pool, valkey, number).running())
            for number in range(4)
        ]


async def all_offers(processes: list[DeliveryProcess], *, count: int) -> list[OfferToken]:
    """Request offers from all processes until there are `count`, and then some more requests."""
    offers: list[OfferToken] = []
    async with asyncio.timeout(OFFERED_SECONDS_MAX):
        while len(offers) < count:
            offers += await request_once(processes)
    for _ in range(REQUESTS_AFTERWARDS):
        offers += await request_once(processes)
    return offers


async def request_once(processes: list[DeliveryProcess]) -> list[OfferToken]:
    await asyncio.sleep(0.01)
    return [offer for process in processes for offer in process.offers()]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_budget_for_n_impressions_allows_n_offers(
    catalog: CampaignCatalog, processes: list[DeliveryProcess], times: int
) -> None:
    placement = await catalog.placement()
    await catalog.campaign(placement, bid_micros=1_000 * 100 * PAISA, daily_paisa=100 * times)

    offers = await all_offers(processes, count=times)

    assert len(offers) == times
    assert all(token.charge == 100 * PAISA and token.lease > 0 for token in offers)
    assert all(token.charged_by is ChargedBy.IMPRESSION for token in offers)


async def test_an_advertisers_budget_is_shared_by_its_campaigns(
    catalog: CampaignCatalog, processes: list[DeliveryProcess]
) -> None:
    placement, advertiser = await catalog.placement(), await catalog.advertiser(200)
    for _ in range(10):
        await catalog.campaign(
            placement, bid_micros=1_000 * 100 * PAISA, daily_paisa=None, advertiser=advertiser
        )

    offers = await all_offers(processes, count=2)

    assert len(offers) == 2


async def test_a_raised_budget_allows_more_offers_and_a_pause_stops_them(
    catalog: CampaignCatalog, processes: list[DeliveryProcess]
) -> None:
    placement = await catalog.placement()
    campaign = await catalog.campaign(placement, bid_micros=1_000 * 100 * PAISA, daily_paisa=100)
    assert len(await all_offers(processes, count=1)) == 1

    await catalog.change(campaign, "budget_daily_paisa = $2", 100_000)
    await all_offers(processes, count=1)
    before = processes[0].refresher.current.version
    await catalog.change(campaign, "status = 'paused'")
    await eventually(
        lambda: all(process.refresher.current.version > before for process in processes),
        seconds=OFFERED_SECONDS_MAX,
    )

    assert await all_offers(processes, count=0) == []


async def test_a_campaign_without_a_budget_needs_no_lease_and_one_without_a_bid_is_free(
    catalog: CampaignCatalog, processes: list[DeliveryProcess]
) -> None:
    placement = await catalog.placement()
    await catalog.campaign(placement, bid_micros=5_000, daily_paisa=None)
    await catalog.campaign(placement, bid_micros=None, daily_paisa=100)
    await eventually(lambda: len(processes[0].offers()) == 2, seconds=30)

    offers = processes[0].offers()

    assert sorted((token.lease, token.charge) for token in offers) == [(0, 0), (0, 5)]


async def test_a_head_request_takes_nothing_out_of_the_lease(
    catalog: CampaignCatalog, processes: list[DeliveryProcess]
) -> None:
    placement = await catalog.placement()
    await catalog.campaign(placement, bid_micros=1_000 * 100 * PAISA, daily_paisa=100)
    holder = None
    async with asyncio.timeout(60):
        while holder is None:
            holder = next((process for process in processes if process.offers(method=b"HEAD")), None)
            await asyncio.sleep(0.01)

    assert len(holder.offers(method=b"HEAD")) == 1
    assert len(holder.page("home")) == 1
    assert len(holder.page("home")) == 0


async def test_a_process_spends_its_lease_while_the_worker_is_away(
    pool: Pool, valkey: Valkey, catalog: CampaignCatalog
) -> None:
    placement = await catalog.placement()
    await catalog.campaign(placement, bid_micros=1_000, daily_paisa=100_000)
    async with DeliveryProcess(pool, valkey, 1).running() as process:
        async with running_budget_actors(pool, valkey):
            await eventually(lambda: bool(process.offers(method=b"HEAD")), seconds=30)
        away = [len(process.offers()) for _ in range(50)]
        async with running_budget_actors(pool, valkey):
            await eventually(lambda: bool(process.offers()), seconds=30)

    assert away[0] == 1
    assert away[-1] == 0
