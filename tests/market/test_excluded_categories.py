"""Categories that campaigns exclude: on their pages an auction is as if these campaigns were not there."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.auction.floor_sweep import SweepState
from adloom.budgets.campaign.demand import CampaignDemand
from adloom.core.money import Micros
from adloom.market.auctioneer.state import ConfigureAuctions, FloorTick, PagesClassified
from adloom.market.bids import BIDS_MAX, EXCLUSIONS_MAX, collect_bids, keep_first, list_allowed
from adloom.market.routing import make_auctioneer_address
from simulation.market import Campaigns, Network
from tests.market.builders import SITE, UNIT, a_demand, a_page, a_site, campaign_id, some_slot_terms

HOUSE = make_auctioneer_address(SITE)
ABOVE = {"539": ("483",), "540": ("483",), "424": ("422",)}
CATEGORIES = ("483", "539", "540", "422", "424")
PAGES = 6

chances = st.integers(0, 10**9).map(Random)


def draw_page(number: int, chance: Random) -> list[str]:
    own = chance.sample(CATEGORIES, chance.choice((0, 1, 1, 2, 3)))
    return [f"magazine.test/{number}", *own]


def list_nodes(own: list[str]) -> set[str]:
    return {node for one in own for node in (one, *ABOVE.get(one, ()))}


def draw_demand(number: int, chance: Random) -> CampaignDemand:
    return a_demand(
        number,
        *chance.sample(CATEGORIES, chance.randint(1, 2)),
        cpm=chance.choice((0.6, 1, 2, 5, 9, 30)) + number / 100,
        takes_filler=chance.random() < 0.3,
        is_spent=chance.random() < 0.2,
        excluded_categories=frozenset(chance.sample(CATEGORIES, chance.choice((0, 0, 1, 2)))),
    )


def rank(own: list[str]) -> tuple[tuple[str, float], ...]:
    return tuple((category, 0.9 - place / 10) for place, category in enumerate(own))


def auction(demands: list[CampaignDemand], *pages: list[str], site: ConfigureAuctions) -> Network:
    market = Network(1, ancestors=ABOVE)
    market.step(HOUSE, site)
    campaigns = Campaigns(market)
    for demand in demands:
        campaigns.put(demand)
    market.run(1)
    sold = (msgspec.structs.replace(a_page(url), categories=rank(own)) for url, *own in pages)
    market.step(HOUSE, PagesClassified(tuple(sold)))
    market.run(5)
    return market


def list_banners(market: Network, url: str) -> list[list[int]]:
    row = market.shortlists.get(url)
    return [[one.banner_id.int - 2_000 for one in slot.candidates] for slot in (row.slots if row else ())]


@settings(max_examples=40, deadline=None)
@given(chances)
def test_a_page_has_the_shortlists_that_it_would_have_without_those_that_exclude_it(chance: Random) -> None:
    demands = [draw_demand(number, chance) for number in range(1, chance.randint(2, 14))]
    pages = [draw_page(number, chance) for number in range(PAGES)]
    site = a_site(*("top", "side", "end", "more")[: chance.randint(1, 4)])

    market = auction(demands, *pages, site=site)

    for url, *own in pages:
        allowed = [
            msgspec.structs.replace(one, excluded_categories=frozenset())
            for one in demands
            if one.excluded_categories.isdisjoint(list_nodes(own))
        ]
        alone = auction(allowed, [url, *own], site=site)
        assert list_banners(market, url) == list_banners(alone, url)


@pytest.mark.parametrize("sets", [1, BIDS_MAX + 1])
def test_those_that_exclude_a_page_push_no_other_off_the_list(sets: int) -> None:
    many = [
        a_demand(number, cpm=9, excluded_categories=frozenset({"422", f"of {number % sets}"}))
        for number in range(1, BIDS_MAX + 2)
    ]
    other = a_demand(BIDS_MAX + 2, cpm=5, excluded_categories=frozenset({"540"}))

    market = auction([*many, other], ["magazine.test/a", "539", "424"], site=a_site())

    assert list_banners(market, "magazine.test/a") == [[BIDS_MAX + 2]]


def test_a_bid_that_excludes_nothing_is_kept_beside_any_number_of_sets() -> None:
    count = EXCLUSIONS_MAX + 1
    many = [a_demand(one, cpm=9, excluded_categories=frozenset({"422", f"{one}"})) for one in range(count)]

    bids = collect_bids("483", [*many, a_demand(count, cpm=5)], some_slot_terms()).bids

    assert len(bids) == count
    assert bids[-1].campaign_id == campaign_id(count)


def test_the_bids_under_a_floor_that_matter_to_it_are_there_beside_any_that_exclude_otherwise() -> None:
    """Of each page the lowest and the two highest."""
    count = BIDS_MAX + 10
    demands = [a_demand(one, cpm=one, excluded_categories=frozenset({f"{one}"})) for one in range(1, count)]
    terms = some_slot_terms(floor=Micros(count * UNIT))

    found = collect_bids("483", [*demands, a_demand(count, cpm=3)], terms)

    assert found.under_floor == (3 * UNIT,)
    limited = [one.campaign_id for one in found.under_floor_limited]
    assert {campaign_id(one) for one in (1, 2, count - 3, count - 2, count - 1)} <= set(limited)


@given(chances, st.integers(1, 4))
def test_what_is_left_out_of_a_list_is_not_among_the_first_of_any_page(
    chance: Random, count_max: int
) -> None:
    demands = [draw_demand(number, chance) for number in range(1, 20)]
    bids = collect_bids("483", demands, some_slot_terms()).bids

    kept = keep_first(bids, count_max)

    for own in (draw_page(0, chance)[1:] for _ in range(PAGES)):
        first = list_allowed(bids, list_nodes(own))[:count_max]
        assert list_allowed(kept, list_nodes(own))[:count_max] == first


@settings(max_examples=40, deadline=None)
@given(chances)
def test_a_floor_moves_as_it_would_without_those_that_exclude_its_pages(chance: Random) -> None:
    demands = [draw_demand(number, chance) for number in range(1, chance.randint(2, 14))]
    url, *own = draw_page(1, chance)
    allowed = [
        msgspec.structs.replace(one, excluded_categories=frozenset())
        for one in demands
        if one.excluded_categories.isdisjoint(list_nodes(own))
    ]
    site = a_site(is_sweeping=True, floor_min=Micros(UNIT // 10))

    def move_floors(among: list[CampaignDemand]) -> list[dict[str, SweepState]]:
        market = auction(among, [url, *own], site=site)
        floors: list[dict[str, SweepState]] = []
        for tick in range(1, 5):
            market.step(HOUSE, FloorTick(tick, {}))
            market.run(2)
            floors.append(market.states[HOUSE].floors)
        return floors

    assert move_floors(demands) == move_floors(allowed)
