"""Requests are counted by placement and by site, those of auctions for every placement of their market."""

from datetime import timedelta

import pytest

from adloom.budgets.traffic.counts import (
    INSTALLATION,
    make_placement_day_key,
    read_counts,
    read_placement_requests,
)
from adloom.budgets.traffic.site_day import DAY_SECONDS, find_site_day
from adloom.core.clock import ManualClock
from adloom.core.ids import PlacementId
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.serving.auction.market import Market
from adloom.serving.background.site_traffic import SiteTraffic
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import Snapshot
from adloom.serving.leases.local_leases import LocalLeases
from tests.serving.auction.auction_server import NOON, AuctionServer
from tests.serving.auction.marketplace import Marketplace, a_row, a_slot
from tests.serving.test_serve import serve_routes, served
from tests.support.rows import a_placement_row, a_site_row, a_snapshot, an_assignment_row, an_id

SITE = 4


def an_index() -> Index:
    placements = [
        a_placement_row(key=key, id=PlacementId(an_id(key)), slug=f"place-{key}", site_key=site_key)
        for key, site_key in ((1, SITE), (2, SITE), (3, None))
    ]
    return compile_index(
        Snapshot(
            version=1,
            placements=placements,
            assignments=[],
            banner_ids=[],
            campaign_ids=[],
            sites=[a_site_row(key=SITE)],
        )
    )


def a_traffic(valkey: Valkey, clock: ManualClock) -> SiteTraffic:
    index = an_index()
    return SiteTraffic(valkey, clock, LocalLeases(1), lambda: index)


async def requests_of(valkey: Valkey, key: int) -> tuple[int, int]:
    day = find_site_day(NOON, timezone="UTC", day_seconds=DAY_SECONDS)
    hours = await read_counts(valkey, key, day)
    return sum(hour.requests for hour in hours), sum(hour.served for hour in hours)


async def test_requests_are_counted_by_placement_by_site_and_for_the_installation(valkey: Valkey) -> None:
    traffic = a_traffic(valkey, ManualClock(NOON))
    for placement_key, offers in ((1, 1), (1, 0), (2, 3), (3, 1), (99, 1)):
        traffic.count(placement_key, offers)

    await traffic.add()
    await traffic.add()

    assert await requests_of(valkey, SITE) == (3, 2)
    assert await requests_of(valkey, INSTALLATION) == (5, 4)
    found = await read_placement_requests(valkey, NOON.date())
    assert (found.days, dict(found.by_key)) == (1, {1: 2, 2: 1, 3: 1, 99: 1})


async def test_an_auction_asks_for_each_site_of_its_market_and_fills_one_of_them(valkey: Valkey) -> None:
    leases = LocalLeases(1)
    index = an_index()
    traffic = SiteTraffic(valkey, ManualClock(NOON), leases, lambda: index)
    slots = [a_slot(7, site_key=SITE), a_slot(8, site_key=SITE), a_slot(9, site_key=5), a_slot(10)]
    market = Marketplace(a_row(1, "5"), slots=slots).find_market()
    for won_on in (8, 9, 10, None):
        leases.left_out += 1
        traffic.count_auction(market, won_on)
    leases.left_out += 1
    traffic.count(1, 1)

    await traffic.add()

    assert await requests_of(valkey, SITE) == (5, 2)
    assert await requests_of(valkey, INSTALLATION) == (5, 4)
    assert await requests_of(valkey, 5) == (0, 0), "it is no site of the index"
    day = find_site_day(NOON, timezone="UTC", day_seconds=DAY_SECONDS)
    assert sum(hour.throttled for hour in await read_counts(valkey, SITE, day)) == 5


async def test_requests_of_a_week_are_summed_over_the_days_that_are_counted(valkey: Valkey) -> None:
    clock = ManualClock(NOON)
    traffic = a_traffic(valkey, clock)
    for days in (0, 2, 4):  # After the day before: the first, third and seventh day.
        clock.advance(timedelta(days=days))
        traffic.count(1, 0)
        await traffic.add()

    found = [
        await read_placement_requests(valkey, NOON.date() + timedelta(days=days)) for days in (2, 6, 7, 20)
    ]

    assert [(one.days, one.by_key.get(1, 0)) for one in found] == [(3, 2), (7, 3), (6, 2), (1, 0)]


async def test_what_could_not_be_added_is_added_later(valkey: Valkey) -> None:
    traffic = a_traffic(valkey, ManualClock(NOON))
    market = Marketplace(a_row(1, "5"), slots=[a_slot(7), a_slot(8)]).find_market()
    traffic.count(1, 1)
    traffic.count_auction(market, 7)
    await valkey.set(make_placement_day_key(NOON.date()), "not a hash")

    with pytest.raises(VALKEY_AWAY):
        await traffic.add()
    await valkey.delete(make_placement_day_key(NOON.date()))
    traffic.count(1, 0)
    traffic.count_auction(market, None)
    await traffic.add()

    found = await read_placement_requests(valkey, NOON.date())
    assert dict(found.by_key) == {1: 2, 7: 2, 8: 2}


def test_the_routes_count_whatever_they_answer() -> None:
    counted: list[int] = []
    markets: list[tuple[list[int], int | None]] = []

    def count(placement_key: int, offers: int) -> None:
        counted.append(placement_key * 10 + offers)

    def count_auction(market: Market, won_on: int | None) -> None:
        markets.append(([one.key for one in market.placements], won_on))

    served(serve_routes(a_snapshot(an_assignment_row()), count_traffic=count))
    server = AuctionServer(
        a_row(1, "5", placement_key=7), slots=[a_slot(7), a_slot(8)], count_traffic=count_auction
    )
    server.ask(placementType="feed")
    server.ask(placement="slot-8")
    server.ask(placement="nowhere")

    assert counted == [11]
    assert markets == [([7, 8], 7), ([8], None)]
