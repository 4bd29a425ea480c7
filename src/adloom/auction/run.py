"""The plain auction over a list of bids: the oracle that the fast one is tested against."""

from collections.abc import Iterable, Sequence

import msgspec

from adloom.auction.bid import Bid, BidOutcome, OwnBids
from adloom.auction.price import (
    compute_charge,
    compute_ecpm,
    compute_final_price,
    compute_least_ecpm,
    compute_worth,
    find_lowest_bid,
    round_to_band,
)
from adloom.core.money import Micros


class BidResult(msgspec.Struct, frozen=True, kw_only=True):
    """A bid and its outcome."""

    bid: Bid
    ecpm: Micros
    outcome: BidOutcome
    would_have_to_bid: Micros | None = None  # If it did not win; None if no bid would have.
    bid_in_band: Micros | None = None  # The same, from the band that the rival's eCPM is in.


class AuctionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an auction; bids that took part come first, the highest first."""

    placed: tuple[BidResult, ...]
    winner: Bid | None = None
    ecpm: Micros = Micros(0)
    second: Micros | None = None  # The eCPM that the winner had to exceed.
    final: Micros = Micros(0)
    charge: Micros = Micros(0)


def run_auction(bids: Iterable[Bid], *, own_bids: OwnBids = OwnBids.IGNORE) -> AuctionResult:
    ranked = sorted(bids, key=_rank)
    taking_part = [bid for bid in ranked if takes_part(bid)]
    if not taking_part:
        return AuctionResult(placed=tuple(_judge(bid, taking_part, winner=None) for bid in ranked))
    winner = taking_part[0]
    ecpm = compute_bid_ecpm(winner)
    rivals = [bid for bid in taking_part[1:] if own_bids is OwnBids.COUNT or bid.payer != winner.payer]
    second = compute_bid_ecpm(rivals[0]) if rivals else None
    final = compute_final_price(ecpm, second=second, floor=winner.floor)
    in_order = [*taking_part, *(bid for bid in ranked if not takes_part(bid))]
    return AuctionResult(
        placed=tuple(_judge(bid, taking_part, winner=winner) for bid in in_order),
        winner=winner,
        ecpm=ecpm,
        second=second,
        final=final,
        charge=compute_charge(winner.bid, ecpm=ecpm, final=final),
    )


def compute_bid_ecpm(bid: Bid) -> Micros:
    return compute_ecpm(bid.bid_type, compute_worth(bid.bid, bid.quality), bid.ctr)


def takes_part(bid: Bid) -> bool:
    return compute_bid_ecpm(bid) >= compute_least_ecpm(bid.floor)


def find_bid_to_win(bid: Bid, rivals: Sequence[Bid], *, is_banded: bool = False) -> Micros | None:
    """Return the lowest bid that would have won, or one that would have; `rivals` take part, the highest first."""
    needed = compute_least_ecpm(bid.floor)
    highest = next((one for one in rivals if one is not bid), None)
    if highest is not None:
        # On a tie the older campaign wins.
        to_beat = Micros(compute_bid_ecpm(highest) + (highest.seniority < bid.seniority))
        needed = max(needed, round_to_band(to_beat) if is_banded else to_beat)
    return find_lowest_bid(bid.bid_type, needed, ctr=bid.ctr, quality=bid.quality)


def _judge(bid: Bid, taking_part: Sequence[Bid], *, winner: Bid | None) -> BidResult:
    ecpm = compute_bid_ecpm(bid)
    if bid is winner:
        return BidResult(bid=bid, ecpm=ecpm, outcome=BidOutcome.WON)
    outcome = BidOutcome.LOST if takes_part(bid) else BidOutcome.UNDER_FLOOR
    return BidResult(
        bid=bid,
        ecpm=ecpm,
        outcome=outcome,
        would_have_to_bid=find_bid_to_win(bid, taking_part),
        bid_in_band=find_bid_to_win(bid, taking_part, is_banded=True),
    )


def _rank(bid: Bid) -> tuple[int, tuple[int, int, int]]:
    return -compute_bid_ecpm(bid), bid.seniority
