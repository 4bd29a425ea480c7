"""The cost of an offer that won an auction: whole micros, and never more than the bid."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.core.money import IMPRESSIONS_PER_CPM, MICROS_PER_UNIT, Micros, price_impression
from adloom.serving.auction.decide import WinningBid, compute_offer_cost
from tests.auction.bids import units
from tests.serving.auction.marketplace import Marketplace, a_row

BIDS = st.integers(1, 1_000 * MICROS_PER_UNIT)


def a_win(bid: int, charge: int, bid_type: BidType = BidType.CPM) -> WinningBid:
    win = Marketplace(a_row(1, "1", bid_type=bid_type)).auction()
    assert win is not None
    bidder = msgspec.structs.replace(win.bidder, bid=Micros(bid))
    return msgspec.structs.replace(win, bidder=bidder, charge=Micros(charge))


@given(BIDS, st.data())
def test_a_thousand_impressions_cost_at_most_their_bid(bid: int, data: st.DataObject) -> None:
    charge = data.draw(st.integers(0, bid))

    cost = compute_offer_cost(a_win(bid, charge))

    assert cost >= 1
    assert cost <= max(price_impression(Micros(charge)), 1)
    assert charge - cost * IMPRESSIONS_PER_CPM < IMPRESSIONS_PER_CPM
    if bid >= IMPRESSIONS_PER_CPM:
        assert cost * IMPRESSIONS_PER_CPM <= bid
    else:
        assert cost == 1


@given(BIDS, st.data())
def test_a_click_costs_its_charge(bid: int, data: st.DataObject) -> None:
    charge = data.draw(st.integers(0, bid))

    assert compute_offer_cost(a_win(bid, charge, BidType.CPC)) == charge


@pytest.mark.parametrize(
    ("bid", "second", "cost"),
    [("1.0001", "1", 1_000), ("1.0001", "0.5", 510), ("1.0001", "0.5001", 511), ("0.0009", "0.0009", 1)],
)
def test_the_cost_of_an_impression_is_rounded_up_unless_that_exceeds_the_bid(
    bid: str, second: str, cost: int
) -> None:
    win = Marketplace(a_row(1, bid), a_row(2, second)).auction()

    assert win is not None
    assert win.charge <= units(bid)
    assert compute_offer_cost(win) == cost
