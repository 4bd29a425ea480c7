"""What becomes of every candidate of an auction, and what it would have had to bid.

The steps remove candidates one by one. The rest bid in the plain auction that tests measure the fast one against.
"""

# pure

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from adloom.auction.bid import Bid, BidOutcome, Ctr, OwnBids, Quality
from adloom.auction.price import compute_ecpm, compute_worth, price_thousand_clicks
from adloom.auction.run import AuctionResult, BidResult, run_auction
from adloom.auction.score import Scorer, rate_quality
from adloom.budgets.lifetime_counts import LifetimeCounts
from adloom.core.money import Micros
from adloom.explain.reasons import OUTCOMES, REASONS, CandidateOutcome, Reason, RequestFacts, find_removal
from adloom.serving.auction.bid_record import FLOOR, FREQUENCY_CAP
from adloom.serving.index.bid_block import find_format, has_bid
from adloom.serving.index.rows import AssignmentRow, PlacementRow, PlacementRows
from adloom.targeting.context import Context


class ExplainedAd(msgspec.Struct, frozen=True):
    """An ad, as scoring policies see it."""

    campaign_key: int
    banner_key: int
    placement_key: int
    format: str


class JudgedBid(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate on a placement, its bid, and what became of it."""

    row: AssignmentRow
    placement: PlacementRow
    outcome: CandidateOutcome
    reason: Reason
    ctr: Ctr
    quality: Quality
    ecpm: Micros | None  # None without a bid.
    bid_amount: Micros | None  # Per thousand clicks.
    would_have_to_bid: Micros | None = None
    bid_in_band: Micros | None = None  # For accounts, which must not know what a rival bids.


class ExplainedMarket(msgspec.Struct, frozen=True):
    """The candidates by their bids, those that took part first, and the result."""

    candidates: Sequence[JudgedBid]
    result: AuctionResult


class AuctionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the rows."""

    contexts: Mapping[str, Context]  # By time zone.
    scorers: Mapping[str, Scorer]  # By the name of the policy.
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    seen_enough: Collection[int]  # Banners, by key.
    own_bids: OwnBids
    now: datetime


def explain_market(placements: Sequence[PlacementRows], facts: AuctionFacts) -> ExplainedMarket:
    bids: dict[tuple[int, int, int], tuple[AssignmentRow, PlacementRow]] = {}
    bidding: list[Bid] = []
    removed: list[JudgedBid] = []
    for market in placements:
        of_placement = RequestFacts(
            context=facts.contexts[market.placement.timezone],
            counts=facts.counts,
            budgets=facts.budgets,
            now=facts.now,
        )
        for row in market.assignments:
            bid = _build_bid(row, market.placement, facts)
            reason = _find_removal(row, of_placement, facts)
            if reason is None:
                bidding.append(bid)
                bids[bid.seniority] = row, market.placement
            else:
                removed.append(_build_judged(bid, row, market.placement, reason))
    result = run_auction(bidding, own_bids=facts.own_bids)
    placed = [_judge(one, *bids[one.bid.seniority]) for one in result.placed]
    return ExplainedMarket([*placed, *sorted(removed, key=_rank)], result)


def _find_removal(row: AssignmentRow, of_placement: RequestFacts, facts: AuctionFacts) -> Reason | None:
    """Return why a candidate is removed before bids are compared, or None."""
    if not has_bid(row):
        return REASONS["no_bid"]
    reason = find_removal(row, of_placement)
    if reason is None and row.banner_key in facts.seen_enough:
        return REASONS[FREQUENCY_CAP]
    return reason


def _build_bid(row: AssignmentRow, placement: PlacementRow, facts: AuctionFacts) -> Bid:
    ad_format = find_format(row)
    ad = ExplainedAd(row.campaign_key, row.banner_key, placement.key, ad_format)
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


def _judge(placed: BidResult, row: AssignmentRow, placement: PlacementRow) -> JudgedBid:
    reasons = {
        BidOutcome.WON: OUTCOMES["won_auction"],
        BidOutcome.LOST: OUTCOMES["outbid"],
        BidOutcome.UNDER_FLOOR: REASONS[FLOOR],
    }
    judged = _build_judged(placed.bid, row, placement, reasons[placed.outcome])
    outcomes = {BidOutcome.WON: CandidateOutcome.WON, BidOutcome.LOST: CandidateOutcome.LOST}
    return msgspec.structs.replace(
        judged,
        outcome=outcomes.get(placed.outcome, CandidateOutcome.REMOVED),
        would_have_to_bid=placed.would_have_to_bid,
        bid_in_band=placed.bid_in_band,
    )


def _build_judged(bid: Bid, row: AssignmentRow, placement: PlacementRow, reason: Reason) -> JudgedBid:
    return JudgedBid(
        row=row,
        placement=placement,
        outcome=CandidateOutcome.REMOVED,
        reason=reason,
        ctr=bid.ctr,
        quality=bid.quality,
        ecpm=compute_ecpm(bid.bid_type, compute_worth(bid.bid, bid.quality), bid.ctr) if bid.bid else None,
        bid_amount=price_thousand_clicks(bid.bid_type, bid.bid, bid.ctr) if bid.bid else None,
    )


def _rank(judged: JudgedBid) -> tuple[int, int, int]:
    return -(judged.ecpm or 0), judged.row.campaign_key, judged.row.banner_key
