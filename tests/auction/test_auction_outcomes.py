"""Results of second-price auctions with a floor, computed by hand."""

import time
from decimal import Decimal
from typing import NamedTuple

from adloom.auction.bid import Bid, BidOutcome, BidType, OwnBids, Quality
from adloom.auction.run import run_auction
from adloom.core.money import MICROS_PER_UNIT
from tests.auction.bids import a_bid, units
from tests.support.for_each import for_each

VIDEO, UNKNOWN_FORMAT = Quality(11_000), Quality(9_500)
IGNORE, COUNT = OwnBids.IGNORE, OwnBids.COUNT


class Case(NamedTuple):
    name: str
    bids: list[Bid]
    wins: int | None  # The number of the campaign.
    final: str = "0"
    charge: str = "0"
    own_bids: OwnBids = IGNORE


def micros(amount: str) -> int:
    return int(Decimal(amount) * MICROS_PER_UNIT)


def seconds_of(bids: list[Bid]) -> float:
    started_at = time.thread_time()
    run_auction(bids)
    return time.thread_time() - started_at


def bids_of(*amounts: str, floor: str = "0") -> list[Bid]:
    return [a_bid(amount, number=number, floor=floor) for number, amount in enumerate(amounts, 1)]


def two_bids_of_one_advertiser(*, with_a_rival: bool) -> list[Bid]:
    own = [
        a_bid("7", number=1, advertiser_key=9, floor="2"),
        a_bid("6", number=2, advertiser_key=9, floor="2"),
    ]
    return [*own, a_bid("4", number=3, advertiser_key=8, floor="2")] if with_a_rival else own


# 0.50 a click at a CTR of 2 % is 10.00 a thousand impressions, as a video 11.00.
PER_CLICK = a_bid("0.50", number=2, bid_type=BidType.CPC, quality=VIDEO)

CASES = [
    Case("no bid at all", [], None),
    Case("no bid over the floor", bids_of("3", "4.99", floor="5"), None),
    Case("one over the floor, alone", bids_of("7", floor="5"), 1, "5", "5"),
    Case("one at the floor", bids_of("5", floor="5"), 1, "5", "5"),
    Case("two over the floor", bids_of("4", "7", floor="2"), 2, "4.01", "4.01"),
    Case("second at the floor", bids_of("7", "2", floor="2"), 1, "2.01", "2.01"),
    Case("floor between first and second", bids_of("7", "4.99", floor="5"), 1, "5", "5"),
    Case("tie above the floor", bids_of("3", "6", "6", floor="2"), 2, "6", "6"),
    Case("tie at the floor", bids_of("6", "6", floor="6"), 1, "6", "6"),
    Case("second and a cent is above the winner's own", bids_of("6", "6.005"), 2, "6.005", "6.005"),
    Case("second and a cent is the winner's own", bids_of("6", "6.01"), 2, "6.01", "6.01"),
    Case("no floor and one bid", bids_of("7"), 1, "0.01", "0.01"),
    Case("no floor and one bid under a cent", bids_of("0.004"), 1, "0.004", "0.004"),
    Case("one advertiser twice, alone", two_bids_of_one_advertiser(with_a_rival=False), 1, "2", "2"),
    Case(
        "one advertiser twice, alone, counted",
        two_bids_of_one_advertiser(with_a_rival=False),
        1,
        "6.01",
        "6.01",
        COUNT,
    ),
    Case(
        "one advertiser twice, and another", two_bids_of_one_advertiser(with_a_rival=True), 1, "4.01", "4.01"
    ),
    Case(
        "one advertiser twice, and another, counted",
        two_bids_of_one_advertiser(with_a_rival=True),
        1,
        "6.01",
        "6.01",
        COUNT,
    ),
    Case("CPC over CPM", [a_bid("9"), PER_CLICK], 2, "9.01", "0.409545"),
    Case("CPM over CPC", [a_bid("12", quality=UNKNOWN_FORMAT), PER_CLICK], 1, "11.01", "11.589474"),
    Case("CPM and CPC tie", [a_bid("11", number=3), PER_CLICK], 2, "11", "0.50"),
    Case(
        "the winner pays the floor of its own placement",
        [a_bid("7", number=1, floor="5"), a_bid("4", number=2, floor="1")],
        1,
        "5",
        "5",
    ),
    Case(
        "a floor elsewhere raises no price here",
        [a_bid("7", number=1, floor="1"), a_bid("4", number=2, floor="5")],
        1,
        "1",
        "1",
    ),
    Case(
        "an ad against itself on another placement",
        [a_bid("7", placement_key=1, floor="1"), a_bid("7", placement_key=2, floor="3")],
        1,
        "1",
        "1",
    ),
]


@for_each("case", CASES)
def test_an_auction_has_this_winner_and_this_price(case: Case) -> None:
    result = run_auction(case.bids, own_bids=case.own_bids)

    assert (result.winner and result.winner.campaign_key) == case.wins
    assert (result.final, result.charge) == (micros(case.final), micros(case.charge))


def test_every_bid_has_an_outcome() -> None:
    result = run_auction(bids_of("3", "6", "8", "4.99", floor="5"))

    assert [(one.bid.campaign_key, one.outcome) for one in result.placed] == [
        (3, BidOutcome.WON),
        (2, BidOutcome.LOST),
        (4, BidOutcome.UNDER_FLOOR),
        (1, BidOutcome.UNDER_FLOOR),
    ]


def test_a_lost_bid_names_the_bid_that_would_have_won() -> None:
    older, younger = a_bid("6", number=1), a_bid("6", number=3)
    per_click = a_bid("0.30", number=4, bid_type=BidType.CPC)

    placed = run_auction([older, a_bid("8", number=2), younger, per_click]).placed

    needed = {one.bid.campaign_key: one.would_have_to_bid for one in placed}
    # The older bid would win the tie, the younger would not; 0.40 a click is 8.00 a thousand impressions,
    # and half a micro more than that rounds up.
    assert needed == {1: units("8"), 2: None, 3: units("8") + 1, 4: units("0.40") + 1}


def test_a_bid_under_the_floor_needs_the_floor_to_win() -> None:
    placed = run_auction(
        [a_bid("4", floor="5"), a_bid("0.10", number=2, floor="5", bid_type=BidType.CPC)]
    ).placed

    assert [one.would_have_to_bid for one in placed] == [units("5"), units("0.25")]


def test_an_auction_without_a_winner_takes_about_as_long_as_one_with_a_winner() -> None:
    under = [a_bid("4", number=number, floor="5") for number in range(1, 1_001)]

    # Comparing every bid with every other took a hundred times as long.
    assert seconds_of(under) < 10 * seconds_of([*under, a_bid("6")])


def test_a_cpc_bid_on_an_ad_with_a_ctr_of_zero_cannot_win() -> None:
    (placed,) = run_auction([a_bid("4", ctr=0, bid_type=BidType.CPC)]).placed

    assert (placed.outcome, placed.would_have_to_bid) == (BidOutcome.UNDER_FLOOR, None)
