"""eCPM, charge and lowest bid: rounded half up, once, at the end."""

import pytest

from adloom.auction.bid import CTR_ONE, BidType, Ctr, Quality
from adloom.auction.price import (
    compute_charge,
    compute_click_hold,
    compute_ecpm,
    compute_worth,
    find_lowest_bid,
    price_thousand_clicks,
)
from adloom.core.money import Micros
from tests.support.for_each import for_each


@for_each(
    ("bid_type", "bid", "ctr", "quality", "ecpm"),
    [
        (BidType.CPM, 2_000_000, 12_000_000, 11_000, 2_200_000),
        (BidType.CPM, 1, 12_000_000, 4_999, 0),
        (BidType.CPM, 1, 12_000_000, 5_000, 1),
        (BidType.CPM, 3, 12_000_000, 5_000, 2),
        (BidType.CPC, 250_000, 18_000_000, 10_000, 4_500_000),
        (BidType.CPC, 250_000, 24_750_000, 9_500, 5_878_125),
        (BidType.CPC, 1, 499_999, 10_000, 0),
        (BidType.CPC, 1, 500_000, 10_000, 1),
    ],
)
def test_an_ecpm_is_rounded_half_up(bid_type: BidType, bid: int, ctr: int, quality: int, ecpm: int) -> None:
    assert compute_ecpm(bid_type, compute_worth(Micros(bid), Quality(quality)), Ctr(ctr)) == ecpm


@for_each(("final", "charge"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (8, 3), (9, 3)])
def test_a_charge_is_the_bid_reduced_to_the_final_price(final: int, charge: int) -> None:
    assert compute_charge(Micros(3), ecpm=Micros(9), final=Micros(final)) == charge


@pytest.mark.parametrize(
    ("ecpm", "quality", "hold"),
    [
        (20_000_000, 10_000, 60_000),  # 2 clicks in 100 are expected.
        (20_000_000, 5_000, 120_000),  # Quality lowers the eCPM, not the chance of a click.
        (1_000_000, 10_000, 10_000),  # A hundredth of the bid at least,
        (0, 0, 10_000),
        (900_000_000, 10_000, 1_000_000),  # and never more than the bid.
    ],
)
def test_an_offer_holds_three_times_its_expected_cost(ecpm: int, quality: int, hold: int) -> None:
    assert compute_click_hold(Micros(1_000_000), ecpm=Micros(ecpm), quality=Quality(quality)) == hold


def test_no_cpc_bid_reaches_an_ecpm_at_a_ctr_of_zero() -> None:
    assert find_lowest_bid(BidType.CPC, Micros(1), ctr=Ctr(0), quality=Quality(10_000)) is None
    assert find_lowest_bid(BidType.CPM, Micros(1), ctr=Ctr(0), quality=Quality(10_000)) == 1


def test_a_bid_is_shown_as_a_price_per_thousand_clicks() -> None:
    two_per_cent = Ctr(CTR_ONE // 50)

    assert price_thousand_clicks(BidType.CPC, Micros(500_000), two_per_cent) == 500_000_000
    assert price_thousand_clicks(BidType.CPM, Micros(10_000_000), two_per_cent) == 500_000_000
    assert price_thousand_clicks(BidType.CPM, Micros(10_000_000), Ctr(0)) is None
