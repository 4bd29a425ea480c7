"""The price of an offer in direct delivery."""

import pytest

from adloom.core.money import Micros
from adloom.events.log.event import ChargedBy
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import FREE, LeaseTerms, OfferPrice, compute_price
from tests.support.rows import a_snapshot, an_assignment_row


@pytest.mark.parametrize(
    ("bid_type", "bid", "price"),
    [
        ("cpm", 2_000_000, OfferPrice(Micros(2_000))),
        ("cpm", 1, OfferPrice(Micros(1))),
        ("cpm", 1_001, OfferPrice(Micros(2))),
        ("cpc", 250_000, OfferPrice(Micros(250_000), ChargedBy.CLICK)),
        ("cpm", None, FREE),
        ("cpc", 0, FREE),
    ],
)
def test_an_offer_costs_the_flat_bid(bid_type: str, bid: int | None, price: OfferPrice) -> None:
    assert compute_price(bid_type, None if bid is None else Micros(bid)) == price


@pytest.mark.parametrize(
    ("cost", "is_limited", "is_leased"), [(5, True, True), (5, False, False), (0, True, False)]
)
def test_only_a_priced_campaign_with_a_budget_needs_a_lease(
    cost: int,
    is_limited: bool,  # noqa: FBT001 - a case
    is_leased: bool,  # noqa: FBT001 - a case
) -> None:
    row = an_assignment_row(campaign_key=7, price=OfferPrice(Micros(cost)), is_limited=is_limited)

    placement = compile_index(a_snapshot(row)).by_slug[b"home"]

    assert placement.blocks[0].candidates[0].is_leased is is_leased
    assert placement.terms == ({7: LeaseTerms(row.campaign_id, None, Micros(cost))} if is_leased else {})
