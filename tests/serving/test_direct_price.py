"""The price of an offer in direct delivery."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import BidType
from adloom.core.money import Micros
from adloom.events.log.event import ChargedBy
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import (
    FREE,
    AssignmentStatus,
    DirectTerms,
    LeaseTerms,
    OfferPrice,
    compute_price,
    find_price_problem,
)
from tests.support.rows import a_snapshot, an_assignment_row, an_id


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


accounts = st.none() | st.sampled_from([an_id(1), an_id(2)])


@given(
    st.builds(
        DirectTerms,
        advertiser_id=accounts,
        publisher_id=accounts,
        is_asked_for=st.booleans(),
        placement_type=st.sampled_from(["banner", "story", "feed"]),
        floor=st.integers(0, 5_000_000).map(Micros),
    ),
    st.sampled_from(BidType),
    st.none() | st.integers(0, 5_000_000).map(Micros),
)
def test_an_account_pays_at_least_the_floor_for_what_is_not_its_own(
    terms: DirectTerms, bid_type: BidType, bid: Micros | None
) -> None:
    problem = find_price_problem(terms, bid_type, bid)

    is_own = terms.advertiser_id in {None, terms.publisher_id}
    is_gift = terms.publisher_id is None and not terms.is_asked_for and terms.floor == 0
    if is_own:
        assert problem is None
    elif problem is None:
        assert bid or is_gift
        assert bid_type is BidType.CPC or (bid or 0) >= terms.floor
    else:
        assert not bid or terms.floor > 0
        assert problem in {AssignmentStatus.NO_BID, AssignmentStatus.FLOOR}
