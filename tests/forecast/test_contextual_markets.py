"""Contextual slots of simulated markets: page auctions, shortlists and the choice of creatives as in the product."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from adloom.auction.site_modes import AuctionMode
from adloom.bidding.window import BidStrategy
from adloom.core.money import MICROS_PER_UNIT
from adloom.events.frequency.windows import Window
from adloom.forecast.changes import MarketChangeError, apply_changes, parse_change
from adloom.forecast.file.parts import (
    CampaignPart,
    FrequencyPart,
    MarketFileError,
    PagePart,
    PlacementPart,
    SitePart,
)
from adloom.forecast.market import SimulatedMarket, thin_out
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.rows import Delivery
from tests.forecast.markets import a_campaign, a_market, shown, simulate, spent_micros

SPORTS, SOCCER, FOOD = "483", "533", "210"
A_DAY = 2_000.0


def a_slot(**fields: Any) -> PlacementPart:
    slot = PlacementPart(
        slug="aside", requests_a_day=A_DAY, delivery=Delivery.CONTEXTUAL, site="news.example", floor=0.5
    )
    return msgspec.structs.replace(slot, **fields)


def a_site(*pages: PagePart, **fields: Any) -> SitePart:
    return msgspec.structs.replace(
        SitePart(domain="news.example", pages=pages or (PagePart(path="/match", categories={SPORTS: 0.9}),)),
        **fields,
    )


def a_contextual_market(*campaigns: CampaignPart, **fields: Any) -> SimulatedMarket:
    fields.setdefault("sites", (a_site(),))
    fields.setdefault("placements", (a_slot(),))
    return a_market(*campaigns, **fields)


def test_campaigns_reach_the_pages_that_fit_their_categories() -> None:
    pages = (
        PagePart(path="/match", share=3, categories={SPORTS: 0.9}),
        PagePart(path="/bread", categories={FOOD: 0.8}),
        PagePart(path="/odd", categories={}),
    )
    tally = simulate(
        a_contextual_market(
            a_campaign("Shoes", categories=(SPORTS,)),
            a_campaign("Flour", categories=(FOOD,)),
            a_campaign("Anything", filler=True),
            a_campaign("Nowhere"),
            sites=(a_site(*pages),),
        )
    )

    parts = [shown(tally, key) / tally.requests for key in (1, 2, 3, 4)]
    assert parts == [pytest.approx(0.6, abs=0.04), *[pytest.approx(0.2, abs=0.04)] * 2, 0]
    assert tally.filled == tally.requests


def test_a_campaign_is_on_no_page_that_it_excludes() -> None:
    pages = (
        PagePart(path="/match", categories={SPORTS: 0.9}),
        PagePart(path="/final", categories={SOCCER: 0.9}),
        PagePart(path="/stadium-food", categories={SPORTS: 0.9, FOOD: 0.2}),
    )
    campaigns = [
        a_campaign("Shoes", categories=(SPORTS,), excluded_categories=(SOCCER, FOOD), bid=9.0),
        a_campaign("Balls", categories=(SPORTS,), bid=1.0),
    ]
    tally, alone = (
        simulate(a_contextual_market(*some, sites=(a_site(*pages),))) for some in (campaigns, campaigns[1:])
    )

    # It has most of one page of three, and sets no price on the others.
    assert 0.15 < shown(tally, 1) / tally.requests < 0.35
    assert shown(tally, 2) > 0.6 * tally.requests
    assert spent_micros(tally, 2) / shown(tally, 2) < 1.4 * spent_micros(alone, 1) / shown(alone, 1)


def test_what_is_clicked_is_learned_and_shown_more() -> None:
    campaign = a_campaign(categories=(SPORTS,), banner_click_rates=(0.02, 0.2))

    tally = simulate(a_contextual_market(campaign))

    # Both are tried. Drawn evenly, 11 in a hundred would click.
    clicks = sum(tally.campaigns[1].clicks)
    assert 0.15 < clicks / shown(tally, 1) < 0.2


def test_winners_pay_the_second_price_or_their_bid_and_never_more_than_their_budget() -> None:
    two = (
        a_campaign("High", bid=4.0, categories=(SPORTS,), daily_budget=2),
        a_campaign("Low", bid=1.0, categories=(SPORTS,)),
    )
    second, first = (
        simulate(a_contextual_market(*two, sites=(a_site(auction=mode),))) for mode in AuctionMode
    )

    for tally in (second, first):
        assert 0 < spent_micros(tally, 1) <= 2 * MICROS_PER_UNIT
        assert spent_micros(tally, 2) <= shown(tally, 2) * 0.001 * MICROS_PER_UNIT
    assert spent_micros(first, 1) == shown(first, 1) * 4_000
    assert spent_micros(second, 1) / shown(second, 1) < 0.004 * MICROS_PER_UNIT
    # When the budget is used up, the other has the slots.
    assert shown(first, 1) + shown(first, 2) == first.requests


def test_no_offer_is_made_for_nothing() -> None:
    market = a_contextual_market(a_campaign(categories=(SPORTS,)), placements=(a_slot(floor=0.0),))

    tally = simulate(market)

    # It is alone, so it pays the floor, and a millionth where there is none.
    assert spent_micros(tally, 1) == shown(tally, 1) > 0


def test_targeting_frequency_and_size_decide_as_in_the_product() -> None:
    market = a_contextual_market(
        a_campaign(categories=(SPORTS,), frequency=FrequencyPart(window=Window.DAY, impressions=2)),
        people=100,
    )

    assert shown(simulate(market), 1) == 200
    assert shown(simulate(a_contextual_market(a_campaign(categories=(SPORTS,), bid=0.4))), 1) == 0


def test_changes_are_of_contextual_slots_too() -> None:
    fields: dict[str, Any] = {"bid": 1.0, "categories": (SPORTS,), "click_rate": 0.0}
    market = a_contextual_market(a_campaign("Shoes", **fields), a_campaign("Rival", **fields))

    def simulate_with(change: str) -> int:
        return shown(simulate(apply_changes(market, [parse_change(change, market)])), 1)

    before = shown(simulate(market), 1)
    assert before == pytest.approx(A_DAY / 2, rel=0.3)
    assert simulate_with("campaign Shoes: bid x4") > 1.3 * before
    assert simulate_with("campaign Shoes: categories 210") == 0
    assert simulate_with(f"campaign Shoes: excludes {SPORTS}") == 0
    assert simulate_with("campaign Shoes: budget 0.2") < 0.7 * before


def test_an_exclusion_can_be_taken_away() -> None:
    shoes = a_campaign("Shoes", categories=(SOCCER,), excluded_categories=(SPORTS,))
    market = a_contextual_market(shoes, sites=(a_site(PagePart(path="/final", categories={SOCCER: 0.9})),))

    changed = apply_changes(market, [parse_change("campaign Shoes: excludes none", market)])

    assert shown(simulate(market), 1) == 0
    assert shown(simulate(changed), 1) > 0


def test_the_same_seed_gives_the_same_run_and_a_sample_has_its_proportions() -> None:
    market = a_contextual_market(a_campaign(categories=(SPORTS,), daily_budget=1))

    whole, again = simulate(market), simulate(market)
    sample = simulate(thin_out(market, 0.5))

    assert whole == again
    assert sample.scale * shown(sample, 1) == pytest.approx(shown(whole, 1), rel=0.1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sites": (a_site(PagePart(path="/odd", categories={"nothing": 0.5})),)}, "'nothing'"),
        ({"sites": (a_site(), a_site())}, "Several sites have one domain: news.example"),
        ({"sites": ()}, "let its site be one of the file's sites, not news.example"),
        ({"campaigns": (a_campaign(categories=("0",)),)}, "Shoes has a category"),
        ({"campaigns": (a_campaign(excluded_categories=("0",)),)}, "Shoes has a category"),
        ({"campaigns": (a_campaign(placements=("aside",)),)}, "Give it categories instead"),
    ],
    ids=["page", "twice", "site", "campaign", "excluded", "placement"],
)
def test_what_makes_no_sense_says_what_to_write(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(MarketFileError, match=said):
        a_contextual_market(*fields.pop("campaigns", ()), **fields)


@pytest.mark.parametrize("categories", [(), (SPORTS,)], ids=["wants no pages", "unknown"])
def test_a_change_of_categories_is_of_a_campaign_that_has_some_and_of_known_ones(
    categories: tuple[str, ...],
) -> None:
    with pytest.raises(MarketChangeError):
        parse_change(
            "campaign Shoes: categories nothing", a_contextual_market(a_campaign(categories=categories))
        )


@pytest.mark.parametrize(
    "limits",
    [
        {"impression_cap": 20},
        {"click_cap": 2},
        {"daily_budget": 0.5},
        {"daily_budget": 0.5, "pacing": PacingStrategy.ACCELERATED},
        {"total_budget": 0.1},
    ],
    ids=["impression cap", "click cap", "pace", "budget of a day", "budget"],
)
def test_campaigns_that_cannot_be_shown_keep_no_slot_from_others(limits: dict[str, Any]) -> None:
    high = [a_campaign(name, categories=(SPORTS,), bid=4.0, **limits) for name in ("One", "Two", "Three")]
    low = a_campaign("Low", categories=(SPORTS,), bid=1.0)

    tally = simulate(a_contextual_market(*high, low))

    assert tally.filled > 0.97 * tally.requests
    assert all(shown(tally, key) for key in (1, 2, 3))


def test_campaigns_whose_strategy_bids_less_than_the_floor_keep_no_slot_from_others() -> None:
    strategy: dict[str, Any] = {"bid_strategy": BidStrategy.PACER, "daily_budget": 2.0}
    high = [a_campaign(name, categories=(SPORTS,), bid=4.0, **strategy) for name in ("One", "Two", "Three")]
    low = a_campaign("Low", categories=(SPORTS,), bid=2.0)

    tally = simulate(a_contextual_market(*high, low, placements=(a_slot(floor=1.9),)))

    assert tally.filled > 0.97 * tally.requests
    assert all(shown(tally, key) for key in (1, 2, 3))


@pytest.mark.parametrize("field", ["starts_at", "schedule"])
def test_a_campaign_that_is_not_open_yet_keeps_no_slot_from_others_and_has_it_when_it_opens(
    field: str,
) -> None:
    high = [a_campaign(name, categories=(SPORTS,), bid=4.0) for name in ("One", "Two", "Three")]
    market = a_contextual_market(*high, a_campaign("Low", categories=(SPORTS,), bid=1.0))
    at = market.starts_at + timedelta(hours=12)
    schedule = Schedule(status=ScheduleStatus.SCHEDULED, publish_at=at)
    opens = {"starts_at": at} if field == "starts_at" else {"schedule": schedule}
    creatives = [
        row
        if row.assignment.campaign_key == 4
        else msgspec.structs.replace(row, assignment=msgspec.structs.replace(row.assignment, **opens))
        for row in market.creatives
    ]

    tally = simulate(msgspec.structs.replace(market, creatives=creatives))

    assert tally.filled == tally.requests
    early, late = sum(tally.campaigns[4].impressions[:12]), sum(tally.campaigns[4].impressions[12:])
    assert early > 20 * late
