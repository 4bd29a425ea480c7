"""The fast auction: it decides as the reference auction, without looking at all bids."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from adloom.targeting.rules import parse_rule
from tests.auction.bids import units
from tests.serving.auction.marketplace import COUNT, NOON, Marketplace, a_row, a_slot
from tests.serving.auction.random_check import compare_auctions
from tests.support.contexts import a_context

ONE_A_DAY = (FrequencyLimit(Window.DAY, 1),)


@given(st.integers(0, 2**48))
def test_the_fast_auction_agrees_with_the_reference_auction_over_random_markets(seed: int) -> None:
    assert compare_auctions(seed) > 0


def test_the_highest_bid_wins_and_pays_a_cent_more_than_the_second() -> None:
    market = Marketplace(a_row(1, "3"), a_row(2, "5"), a_row(3, "4"))

    win = market.auction()

    assert win is not None
    assert (win.bidder.campaign_key, win.ecpm, win.second) == (2, units("5"), units("4"))
    assert (win.final, win.charge) == (units("4.01"), units("4.01"))


def test_bids_per_click_compete_with_bids_per_impression() -> None:
    market = Marketplace(a_row(1, "9"), a_row(2, "0.5", bid_type=BidType.CPC))

    win = market.auction()

    assert win is not None
    assert (win.bidder.campaign_key, win.ecpm, win.final) == (2, units("10"), units("9.01"))
    assert win.charge == units("0.4505")


def test_without_bids_there_is_no_winner() -> None:
    assert Marketplace(a_row(1, None), a_row(2, "0")).auction() is None


def test_a_bid_under_the_floor_does_not_win() -> None:
    market = Marketplace(a_row(1, "1.99"), slots=[a_slot(floor="2")])

    assert market.auction() is None


def test_the_winner_pays_the_floor_of_the_placement_on_which_it_wins() -> None:
    market = Marketplace(
        a_row(1, "5", placement_key=1),
        a_row(1, "5", placement_key=2),
        slots=[a_slot(1, floor="6"), a_slot(2, floor="1")],
    )

    win = market.auction()

    assert win is not None
    assert (win.bidder.placement_key, win.final) == (2, units("1"))


def test_a_slug_selects_one_placement() -> None:
    market = Marketplace(
        a_row(1, "5", placement_key=1), a_row(2, "3", placement_key=2), slots=[a_slot(1), a_slot(2)]
    )

    assert [market.winner(slug=slug) for slug in ("slot-1", "slot-2", None)] == [1, 2, 1]


def test_a_type_or_a_slug_that_is_not_auctioned_has_no_market() -> None:
    market = Marketplace(a_row(1, "5"), slots=[a_slot(is_active=False)])

    assert market.markets.find_by_type(market.index, "feed", now=NOON) is None
    assert market.markets.find_by_slug(market.index, b"slot-1", now=NOON) is None
    assert market.markets.find_by_slug(market.index, b"elsewhere", now=NOON) is None


def test_a_campaign_bids_only_for_visitors_that_match_its_rules() -> None:
    abroad = (parse_rule("country", "not_in", ["DE"]),)
    market = Marketplace(a_row(1, "5", rules=abroad), a_row(2, "3"))

    assert [market.winner(a_context(country=country)) for country in ("DE", "FR")] == [2, 1]


def test_an_excluded_campaign_does_not_bid_and_raises_no_price() -> None:
    market = Marketplace(a_row(1, "5"), a_row(2, "3"))
    market.auction()

    market.states.exclude(Exclusions(campaigns={"daily_budget": frozenset({1})}))

    win = market.auction()
    assert win is not None
    assert (win.bidder.campaign_key, win.runner_up, win.final) == (2, None, units("0.01"))


def test_an_auction_can_be_rerun_without_a_campaign() -> None:
    market = Marketplace(a_row(1, "5"), a_row(2, "3"))

    assert market.winner(unreserved=frozenset({1})) == 2
    assert market.winner(seen_enough=frozenset({1})) == 2
    assert market.winner(unreserved=frozenset({1}), seen_enough=frozenset({2})) is None


def test_the_many_bids_of_one_advertiser_do_not_raise_its_price() -> None:
    own = [a_row(number, f"{number}", advertiser_key=7) for number in range(2, 40)]
    other = a_row(1, "1.5", advertiser_key=8)

    ignoring, counting = Marketplace(*own, other), Marketplace(*own, other, own_bids=COUNT)

    wins = [ignoring.auction(), counting.auction()]
    assert [win and win.bidder.campaign_key for win in wins] == [39, 39]
    assert [win and win.final for win in wins] == [units("1.51"), units("38.01")]


def test_the_oldest_of_equal_bids_wins_even_if_they_are_equal_only_by_rounding() -> None:
    # A bid of one micro for a video is worth 1.1 micros, rounded to one. So the oldest bid is behind the youngest in the
    # order of their placement, and that placement would be examined last if its youngest bid represented it.
    def a_micro(number: int, placement: int, **fields: Any) -> AssignmentRow:
        return a_row(number, Micros(1), placement_key=placement, **fields)

    market = Marketplace(
        a_micro(5, 1),
        a_micro(6, 1),
        a_micro(7, 2, video_url="https://cdn.example/a.mp4"),
        a_micro(2, 2),
        slots=[a_slot(1), a_slot(2)],
    )

    assert market.winner() == 2


def test_a_win_lists_the_capped_banners_that_could_change_it() -> None:
    others = (a_row(1, "5"), a_row(2, "4"))

    listed = [
        win.capped_banner_ids
        for win in (
            Marketplace(*others, a_row(3, bid, frequency=ONE_A_DAY)).auction() for bid in ("6", "4.5", "3")
        )
        if win is not None
    ]

    capped = str(a_row(3, "1").banner_id)
    assert listed == [(capped,), (capped,), ()]
