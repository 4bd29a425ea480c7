"""Markets: their candidates over time, and their top bids."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from adloom.serving.auction.scan_plan import TOP_BIDS_MAX, build_top_bids
from adloom.serving.index.index import replace_placements
from adloom.serving.index.rows import AssignmentRow, PlacementRow
from adloom.serving.index.steps import run_steps
from adloom.targeting.rules import parse_rule
from tests.auction.bids import units
from tests.serving.auction.marketplace import NOON, Marketplace, a_row, a_slot, an_index
from tests.support.contexts import a_context

LATER = NOON + timedelta(hours=1)
TWO_SLOTS = [a_slot(1), a_slot(2)]


def with_top_bids(
    *rows: AssignmentRow, slots: Sequence[PlacementRow] = (), bidders_max: int = TOP_BIDS_MAX
) -> Marketplace:
    market = Marketplace(*rows, slots=slots)
    markets = market.markets
    markets.install(run_steps(markets.prepare(market.index, now=NOON, bidders_max=bidders_max)))
    return market


@pytest.fixture(params=[1, TOP_BIDS_MAX], ids=["few top bids", "all top bids"])
def market(request: pytest.FixtureRequest) -> Marketplace:
    return with_top_bids(
        a_row(1, "5", placement_key=1, ends_at=LATER),
        a_row(2, "4", placement_key=2),
        a_row(3, "3", placement_key=1),
        slots=TWO_SLOTS,
        bidders_max=request.param,
    )


def test_a_campaign_ends_at_its_second(market: Marketplace) -> None:
    winners = [market.winner(now=NOON + timedelta(seconds=seconds)) for seconds in (0, 3_599, 3_600)]

    assert winners == [1, 1, 2]


def test_a_market_follows_a_clock_that_goes_back(market: Marketplace) -> None:
    assert [market.winner(now=now) for now in (LATER, NOON)] == [2, 1]


def test_an_excluded_campaign_stops_bidding_and_bids_again_when_it_returns(market: Marketplace) -> None:
    winners = [market.winner()]
    for reason in ("pacing", None):
        market.states.mark_changed({1: reason})
        winners.append(market.winner())

    assert winners == [1, 2, 1]


def test_a_market_counts_as_requested_after_every_auction(market: Marketplace) -> None:
    for _ in range(2):
        market.auction()
        market.auction()

        assert sorted(market.states.take_requested()) == [1, 2]


def test_a_request_for_one_placement_does_not_hide_requests_for_all(market: Marketplace) -> None:
    for _ in range(3):
        market.find_market(slug="slot-1")
        market.find_market()
        assert sorted(market.states.take_requested()) == [1, 2]


def test_a_campaign_that_is_excluded_while_top_bids_are_prepared_does_not_bid() -> None:
    market = Marketplace(a_row(1, "5", placement_key=1), a_row(2, "4", placement_key=2), slots=TWO_SLOTS)
    top_bids = run_steps(market.markets.prepare(market.index, now=NOON))
    market.states.mark_changed({1: "pacing"})

    market.markets.install(top_bids)

    assert market.winner() == 2


def test_a_market_follows_a_new_index(market: Marketplace) -> None:
    assert (market.winner(), market.winner(slug="slot-2")) == (1, 2)

    newer = an_index([a_row(7, "9", placement_key=2)], a_slot(2)).by_key[2]
    index = market.index
    market.index = replace_placements(
        index,
        version=2,
        gone=[2],
        placements=[newer],
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
    )

    assert (market.winner(), market.winner(slug="slot-2"), market.winner(slug="slot-1")) == (7, 7, 1)


def test_top_bids_of_a_market_that_did_not_change_are_kept() -> None:
    market = with_top_bids(a_row(1, "5"), slots=TWO_SLOTS)
    markets = market.markets

    first = run_steps(markets.prepare(market.index, now=NOON))
    markets.install(first)

    assert run_steps(markets.prepare(market.index, now=NOON))["feed"] is first["feed"]


def test_each_zone_and_scoring_with_several_placements_has_its_own_top_bids() -> None:
    kolkata, learned = {"timezone": "Asia/Kolkata"}, {"scoring": "learned"}
    slots = [a_slot(1), a_slot(2), a_slot(3, **kolkata), a_slot(4, **kolkata), a_slot(5, **learned)]
    rows = [a_row(slot.key, "1", placement_key=slot.key) for slot in slots]

    top_bids = run_steps(build_top_bids(an_index(rows, *slots).markets["feed"]))

    found = [(top.scoring, top.zone.key, len(top.members)) for top in top_bids]
    assert found == [("heuristic", "UTC", 2), ("heuristic", "Asia/Kolkata", 2)]


def test_top_bids_are_the_highest_of_all_placements() -> None:
    slots = [a_slot(key) for key in range(1, 11)]
    rows = [a_row(number, f"{number}", placement_key=number % 10 + 1) for number in range(1, 101)]

    (top,) = run_steps(build_top_bids(an_index(rows, *slots).markets["feed"], bidders_max=7))

    assert sorted(campaign for campaign, _, _ in top.members) == list(range(94, 101))


def test_targeting_by_hour_uses_the_zone_of_each_placement() -> None:
    noon = (parse_rule("hour_of_day", "in", [12]),)
    market = Marketplace(
        a_row(1, "5", placement_key=1, rules=noon),
        a_row(2, "4", placement_key=2, rules=noon),
        slots=[a_slot(1, timezone="Asia/Kolkata"), a_slot(2)],
    )
    found = market.find_market()

    contexts = [a_context(hour=12 if zone.key == "UTC" else 17) for zone in found.zones]
    win, _ = market.markets.decide(found, contexts, market.scorers(found))

    assert win is not None
    assert win.bidder.campaign_key == 2


def test_an_unknown_scoring_policy_falls_back_to_the_heuristic() -> None:
    market = Marketplace(a_row(1, "5"), slots=[a_slot(scoring="from a newer version")])

    win = market.auction()

    assert win is not None
    assert win.ecpm == units("5")
