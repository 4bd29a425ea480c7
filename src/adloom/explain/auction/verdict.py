"""What becomes of every candidate of an auction, and what it would have had to bid: pure.

Each candidate is looked at one by one, in the order in which steps remove it; who is left bids in the
plain auction that the fast one is measured against.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import Bid, BidOutcome, Ctr, OwnBids, Quality
from adloom.auction.price import ecpm_of, price_thousand_clicks, worth_of
from adloom.auction.run import AuctionResult, BidResult, run_auction
from adloom.auction.score import Scorer, rate_quality
from adloom.core.money import Micros
from adloom.explain.placement import verdict
from adloom.explain.sentences import Reason
from adloom.serving.auction.record.removal import FLOOR, FREQUENCY_CAP
from adloom.serving.eligibility.caps import LifetimeCounts
from adloom.serving.index.bid_block import format_of, has_bid
from adloom.serving.index.rows import AssignmentRow, PlacementRow, PlacementRows
from adloom.targeting.context import Context

NO_BID: Final = Reason("no_bid", "The campaign bids nothing.", "Give the campaign a bidAmount.")
SEEN_ENOUGH: Final = Reason(
    FREQUENCY_CAP,
    "The user has seen the ad as often as its frequency caps allow, or it is not known how often.",
    "Wait for the next window of the cap, or delete the cap.",
)
UNDER_FLOOR: Final = Reason(
    FLOOR,
    "Its eCPM is under the floor of the placement.",
    "Raise bidAmount of the campaign to what it would have had to bid, or lower floorCpm of the placement.",
)
WON: Final = Reason("won", "It has the highest eCPM, or the oldest campaign of those who have it.")
OUTBID: Final = Reason(
    "outbid",
    "Another ad has a higher eCPM, or the same with an older campaign.",
    "Raise bidAmount of the campaign to what it would have had to bid.",
)


class Ad(msgspec.Struct, frozen=True):
    """An ad, as policies see it."""

    campaign_key: int
    banner_key: int
    placement_key: int
    format: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate on a placement, its bid, and what became of it."""

    row: AssignmentRow
    placement: PlacementRow
    outcome: verdict.Outcome
    reason: Reason
    ctr: Ctr
    quality: Quality
    ecpm: Micros | None  # None where nothing is bid.
    bid_amount: Micros | None  # Per thousand clicks.
    would_have_to_bid: Micros | None = None


class Explained(msgspec.Struct, frozen=True):
    """An auction: the candidates in the order of what they bid, those who took part first, and its result."""

    candidates: Sequence[Judged]
    result: AuctionResult


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the rows."""

    contexts: Mapping[str, Context]  # By time zone.
    scorers: Mapping[str, Scorer]  # By the name of the policy.
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    seen_enough: Collection[int]  # Banners, by key.
    own_bids: OwnBids
    now: datetime


def explained(placements: Sequence[PlacementRows], facts: Facts) -> Explained:
    """Judge all candidates of a market."""
    bids: dict[tuple[int, int, int], tuple[AssignmentRow, PlacementRow]] = {}
    bidding: list[Bid] = []
    removed: list[Judged] = []
    for market in placements:
        of_placement = verdict.Facts(
            context=facts.contexts[market.placement.timezone],
            counts=facts.counts,
            budgets=facts.budgets,
            now=facts.now,
        )
        for row in market.assignments:
            bid = _bid(row, market.placement, facts)
            reason = _removal(row, of_placement, facts)
            if reason is None:
                bidding.append(bid)
                bids[bid.seniority] = row, market.placement
            else:
                removed.append(_judged(bid, row, market.placement, reason))
    result = run_auction(bidding, own_bids=facts.own_bids)
    placed = [_placed(one, *bids[one.bid.seniority]) for one in result.placed]
    return Explained([*placed, *sorted(removed, key=_rank)], result)


def _removal(row: AssignmentRow, of_placement: verdict.Facts, facts: Facts) -> Reason | None:
    """Name the first step that removes a candidate before anybody compares bids."""
    if not has_bid(row):
        return NO_BID
    reason = verdict.removal_of(row, of_placement)
    if reason is None and row.banner_key in facts.seen_enough:
        return SEEN_ENOUGH
    return reason


def _bid(row: AssignmentRow, placement: PlacementRow, facts: Facts) -> Bid:
    ad_format = format_of(row)
    ad = Ad(row.campaign_key, row.banner_key, placement.key, ad_format)
    return Bid(
        campaign_key=row.campaign_key,
        banner_key=row.banner_key,
        placement_key=placement.key,
        advertiser_key=row.advertiser_key,
        bid_type=row.bid_type,
        bid=row.bid or Micros(0),
        ctr=facts.scorers[placement.scoring].predict_ctr(ad),
        quality=rate_quality(ad_format),
        floor=placement.floor,
    )


def _placed(placed: BidResult, row: AssignmentRow, placement: PlacementRow) -> Judged:
    reasons = {BidOutcome.WON: WON, BidOutcome.LOST: OUTBID, BidOutcome.UNDER_FLOOR: UNDER_FLOOR}
    judged = _judged(placed.bid, row, placement, reasons[placed.outcome])
    outcomes = {BidOutcome.WON: verdict.Outcome.WON, BidOutcome.LOST: verdict.Outcome.LOST}
    return msgspec.structs.replace(
        judged,
        outcome=outcomes.get(placed.outcome, verdict.Outcome.REMOVED),
        would_have_to_bid=placed.would_have_to_bid,
    )


def _judged(bid: Bid, row: AssignmentRow, placement: PlacementRow, reason: Reason) -> Judged:
    return Judged(
        row=row,
        placement=placement,
        outcome=verdict.Outcome.REMOVED,
        reason=reason,
        ctr=bid.ctr,
        quality=bid.quality,
        ecpm=ecpm_of(bid.bid_type, worth_of(bid.bid, bid.quality), bid.ctr) if bid.bid else None,
        bid_amount=price_thousand_clicks(bid.bid_type, bid.bid, bid.ctr) if bid.bid else None,
    )


def _rank(judged: Judged) -> tuple[int, int, int]:
    return -(judged.ecpm or 0), judged.row.campaign_key, judged.row.banner_key
