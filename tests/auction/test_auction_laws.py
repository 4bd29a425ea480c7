"""Law 4: the winner pays at least the floor and never more than its bid, and bidding the truth is best.

In detail, for the last: let a bid's eCPM be `k * bid`, before it is rounded. An advertiser has
one bid in the auction, and a value `v` of what it bids for; it gains `v - charge` where it wins, else
nothing. An advertiser that bids something other than `v`
 - above it gains no more than with `v` and one micro of the bid and one of the eCPM: their roundings;
 - below it gains no more than that and a cent of the eCPM, and the cent only where it comes closer
   to the second bid than a cent, since a winner never pays more than its own bid (a price of "second and a
   cent" would be the truth's own price otherwise).
A bid below `v` that loses what `v` wins gains nothing, and `v` never loses by winning.
"""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, Bid, BidOutcome, BidType, Ctr, OwnBids, Quality
from adloom.auction.price import CENT, PER_CLICK, PER_IMPRESSION, round_to_band
from adloom.auction.run import AuctionResult, compute_bid_ecpm, find_bid_to_win, run_auction, takes_part
from adloom.core.money import Micros

# Small and large, and many alike: ties, cents and roundings matter.
AMOUNTS = st.integers(1, 30) | st.integers(1, 100).map(lambda cents: cents * 5_000) | st.integers(1, 10**9)
FLOORS = st.just(0) | AMOUNTS
CTRS = st.sampled_from([12_000_000, 20_000_000, 27_500_000]) | st.integers(1, CTR_ONE)
QUALITIES = st.sampled_from([9_500, 10_000, 11_000])
PAYERS = st.none() | st.integers(1, 4)
FEW = st.integers(1, 4)


@st.composite
def bids(draw: st.DrawFn, *, advertisers: st.SearchStrategy[int | None] = PAYERS) -> Bid:
    fields: dict[str, Any] = {
        "campaign_key": draw(FEW),
        "banner_key": draw(FEW),
        "placement_key": draw(FEW),
        "advertiser_key": draw(advertisers),
        "bid": draw(AMOUNTS),
        "ctr": draw(CTRS),
        "quality": draw(QUALITIES),
        "floor": draw(FLOORS),
    }
    return Bid(bid_type=draw(st.sampled_from(BidType)), **fields)


MARKETS = st.lists(bids(), max_size=8, unique_by=lambda bid: bid.seniority)
# On a placement of its own, so that no other bid is equal; of an advertiser of its own, so that it has one bid.
TRUTHFUL_BIDS = bids(advertisers=st.just(99)).map(lambda bid: msgspec.structs.replace(bid, placement_key=9))


def gain(bid: Bid, market: list[Bid], *, value: int) -> tuple[int, AuctionResult]:
    result = run_auction([*market, bid])
    return (value - result.charge if result.winner is bid else 0), result


def factor(bid: Bid) -> tuple[int, int]:
    """Return the eCPM of a bid before rounding, as numerator and denominator of a factor of the bid."""
    if bid.bid_type is BidType.CPM:
        return bid.quality, PER_IMPRESSION
    return bid.quality * bid.ctr, PER_CLICK


@given(MARKETS, st.sampled_from(OwnBids))
def test_the_winner_pays_between_the_floor_and_its_own_bid(market: list[Bid], own_bids: OwnBids) -> None:
    result = run_auction(market, own_bids=own_bids)

    winner = result.winner
    if winner is None:
        assert not any(map(takes_part, market))
        return
    assert winner.floor <= result.final <= result.ecpm == compute_bid_ecpm(winner)
    assert 0 <= result.charge <= winner.bid
    # The charge is the final price in what was bid, to half a micro.
    assert 2 * abs(result.charge * result.ecpm - winner.bid * result.final) <= result.ecpm
    assert result.ecpm == max(compute_bid_ecpm(bid) for bid in market if takes_part(bid))


@given(MARKETS, st.sampled_from(OwnBids), st.randoms(use_true_random=False))
def test_the_order_of_bids_does_not_matter(market: list[Bid], own_bids: OwnBids, chance: Any) -> None:
    shuffled = market.copy()
    chance.shuffle(shuffled)

    assert run_auction(shuffled, own_bids=own_bids) == run_auction(market, own_bids=own_bids)


@given(MARKETS)
def test_counting_an_advertisers_own_bids_never_lowers_the_price(market: list[Bid]) -> None:
    ignoring, counting = run_auction(market), run_auction(market, own_bids=OwnBids.COUNT)

    assert ignoring.winner == counting.winner
    assert ignoring.final <= counting.final


@given(MARKETS)
def test_the_bid_that_an_account_is_told_wins(market: list[Bid]) -> None:
    for placed in run_auction(market).placed:
        if placed.outcome is BidOutcome.WON:
            continue
        assert placed.bid_in_band is not None
        assert placed.would_have_to_bid is not None
        assert placed.bid_in_band >= placed.would_have_to_bid
        others = [bid for bid in market if bid is not placed.bid]
        winning = msgspec.structs.replace(placed.bid, bid=placed.bid_in_band)
        assert run_auction([*others, winning]).winner is winning


def a_rival(ecpm: int) -> Bid:
    return Bid(
        campaign_key=0,
        banner_key=0,
        placement_key=0,
        advertiser_key=99,
        bid_type=BidType.CPM,
        bid=Micros(ecpm),
        ctr=Ctr(0),
        quality=Quality(QUALITY_ONE),
        floor=Micros(0),
    )


@given(MARKETS, st.integers(2, 10**9), st.floats(0, 1))
def test_accounts_are_told_the_band_of_a_rivals_price_and_no_more(
    market: list[Bid], ecpm: int, share: float
) -> None:
    band = round_to_band(Micros(ecpm + 1))
    another = ecpm + int((band - 1 - ecpm) * share)

    for bid in market:
        told = {find_bid_to_win(bid, [a_rival(one)], is_banded=True) for one in (ecpm, another)}
        assert len(told) == 1


@given(MARKETS)
def test_the_bid_that_a_loser_needed_is_the_lowest_that_wins(market: list[Bid]) -> None:
    for placed in run_auction(market).placed:
        if placed.outcome is BidOutcome.WON:
            continue
        needed = placed.would_have_to_bid
        assert needed is not None
        assert needed > placed.bid.bid
        others = [bid for bid in market if bid is not placed.bid]
        winning, losing = (
            msgspec.structs.replace(placed.bid, bid=Micros(amount)) for amount in (needed, needed - 1)
        )
        assert run_auction([*others, winning]).winner is winning
        assert run_auction([*others, losing]).winner is not losing


@given(TRUTHFUL_BIDS, MARKETS, st.integers(1, 10**9) | st.integers(1, 30))
def test_over_bidding_never_pays(truth: Bid, market: list[Bid], more: int) -> None:
    lie = msgspec.structs.replace(truth, bid=Micros(truth.bid + more))

    by_truth, _ = gain(truth, market, value=truth.bid)
    by_lie, _ = gain(lie, market, value=truth.bid)

    k, scale = factor(truth)
    assert by_truth >= 0
    assert (by_lie - by_truth) * k <= k + scale


@given(TRUTHFUL_BIDS, MARKETS, st.integers(1, 10**9) | st.floats(0, 0.02))
def test_under_bidding_never_pays(truth: Bid, market: list[Bid], less: float) -> None:
    lower = truth.bid - less if isinstance(less, int) else int(truth.bid * (1 - less))
    lie = msgspec.structs.replace(truth, bid=Micros(max(1, lower)))

    by_truth, _ = gain(truth, market, value=truth.bid)
    by_lie, result = gain(lie, market, value=truth.bid)

    k, scale = factor(truth)
    is_within_a_cent = result.winner is lie and result.final == result.ecpm
    assert by_truth >= 0
    assert (by_lie - by_truth) * k <= k + scale + (CENT * scale if is_within_a_cent else 0)
