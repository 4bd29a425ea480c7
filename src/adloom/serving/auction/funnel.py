"""Which bids took part in an auction, and how many each step removed: for its record, not for its outcome."""

# pure

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import (
    HALF_PER_CLICK,
    HALF_PER_IMPRESSION,
    PER_CLICK,
    PER_IMPRESSION,
    compute_ecpm,
    compute_least_ecpm,
)
from adloom.auction.score import RankedScorer, Scorer
from adloom.serving.auction.decide import NO_KEYS, iter_positions
from adloom.serving.auction.scan_plan import ScanPlan, ScanStep
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.index.bid_block import BidBlock, Bidder, CtrRanking, Lane, lower_bidder
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context

BIDS_MAX: Final = 256
SURPLUS: Final = 1.25  # So many times the bids that are wanted are collected before they are sorted.

_rank = itemgetter(0)


# The negative eCPM, the bidder, the CTR. A plain tuple: there may be hundreds in an auction.
RankedBid = tuple[int, Bidder, Ctr]


class AuctionFunnel(msgspec.Struct, frozen=True, kw_only=True):
    """All candidates of a market for one request, by the step that removed them."""

    bids: list[RankedBid]  # The highest that took part, in the order of the auction.
    bid_count: int
    not_in_time: int
    excluded: int  # By a cap or the budget of the campaign.
    not_targeted: int
    seen_enough: int
    under_floor: int


class StepMasks(NamedTuple):
    """The bids of a block that are left after each step, as bitmaps."""

    in_time: int
    available: int
    targeted: int
    unseen: int


def build_funnel(  # noqa: PLR0913 - all that a request is
    plan: ScanPlan,
    contexts: Sequence[Context],
    scorers: Sequence[Scorer],
    *,
    seen_enough: Collection[int] = NO_KEYS,
    unreserved: Collection[int] = NO_KEYS,
    bids_max: int = BIDS_MAX,
) -> AuctionFunnel:
    """Examine all candidates; call it before the winner is reserved, which may exclude its campaign.

    Bids that are not among the highest are counted by bitmaps. `seen_enough` has only banners with a cap.
    """
    highest = _HighestBids(bids_max)
    total = in_time = available = targeted = unseen = bid_count = 0
    for number, step in enumerate(plan.steps):
        left = compute_step_masks(
            step, contexts[step.context_index], seen_enough=seen_enough, unreserved=unreserved
        )
        total += step.members.bit_count()
        in_time += left.in_time.bit_count()
        available += left.available.bit_count()
        targeted += left.targeted.bit_count()
        mask = left.unseen
        if not mask:
            continue
        unseen += mask.bit_count()
        scorer = scorers[step.scorer_index]
        over_floor = mask & plan.mask_over_floor(number, scorer.ctr_max)
        lowered = over_floor & step.eligible_set.lowered[step.block_number]
        refused = highest.add_block(step.block, over_floor ^ lowered, scorer)
        if lowered:
            refused += highest.add_lowered(step.block, lowered, scorer, step.eligible_set.multipliers)
        bid_count += over_floor.bit_count() - refused
    return AuctionFunnel(
        bids=highest.sort(),
        bid_count=bid_count,
        not_in_time=total - in_time,
        excluded=in_time - available,
        not_targeted=available - targeted,
        seen_enough=targeted - unseen,
        under_floor=unseen - bid_count,
    )


def compute_step_masks(
    step: ScanStep, context: Context, *, seen_enough: Collection[int], unreserved: Collection[int]
) -> StepMasks:
    """Apply the steps to a block that come before bids are compared."""
    eligible_set, number, block = step.eligible_set, step.block_number, step.block
    available = eligible_set.available[number] & step.members
    if unreserved:
        available &= ~_mask_campaigns(unreserved, eligible_set, number)
    targeted = unseen = block.targeting.find_eligible(context, available)
    if seen_enough:
        unseen ^= _mask_banners(seen_enough, block, targeted)
    return StepMasks(eligible_set.schedule_mask.masks[number] & step.members, available, targeted, unseen)


class _HighestBids:
    """The highest bids so far, and some more."""

    def __init__(self, bids_max: int) -> None:
        self._bids_max = bids_max
        self._bids: list[RankedBid] = []
        self._lowest_rank = 0  # Lower bids are not among the highest.

    def add_block(self, block: BidBlock, among: int, scorer: Scorer) -> int:
        """Add the bids of a block that may be among the highest; return how many were under the floor."""
        if len(self._bids) > self._bids_max * SURPLUS:
            self._cut()
        lowest_rank = self._lowest_rank
        refused = 0
        for lane in block.lanes:
            if scorer.is_uniform or not lane.is_per_click:
                self._add_lane(block, lane, among, scorer, lowest_rank)
                continue
            ranked = scorer.ranked
            ranking = None if ranked is None else block.rankings.get(ranked.strengths)
            if ranked is None or ranking is None:
                refused += self._add_each(
                    block, among & lane.members, lambda position: scorer.predict_ctr(block.bidders[position])
                )
            else:
                refused += self._add_ranked(block, among, scorer.ctr_max, ranked, ranking)
        return refused

    def add_lowered(
        self, block: BidBlock, among: int, scorer: Scorer, multipliers: Mapping[int, float]
    ) -> int:
        """Add the bids of campaigns that bid less than their bid; return how many were under the floor."""
        refused = 0
        for position in iter_positions(among):
            one = lower_bidder(block.bidders[position], multipliers)
            ctr = scorer.predict_ctr(one)
            ecpm = compute_ecpm(one.bid_type, one.worth, ctr)
            if ecpm < compute_least_ecpm(one.floor):
                refused += 1
            elif -ecpm <= self._lowest_rank:
                self._bids.append((-ecpm, one, ctr))
        return refused

    def sort(self) -> list[RankedBid]:
        """Return them in the order of the auction; among equals the older campaign comes first."""
        self._cut()
        bids, start = self._bids, 0
        for end in range(1, len(bids) + 1):
            if end == len(bids) or bids[end][0] != bids[start][0]:
                if end - start > 1:
                    bids[start:end] = sorted(bids[start:end], key=_get_seniority)
                start = end
        return bids[: self._bids_max]

    def _add_each(self, block: BidBlock, among: int, ctr_at: Callable[[int], Ctr]) -> int:
        """Add bids per click one by one; return how many were under the floor."""
        refused = 0
        for position in iter_positions(among):
            one, ctr = block.bidders[position], ctr_at(position)
            ecpm = compute_ecpm(BidType.CPC, block.worths[position], ctr)
            if ecpm < compute_least_ecpm(one.floor):
                refused += 1
            elif -ecpm <= self._lowest_rank:
                self._bids.append((-ecpm, one, ctr))
        return refused

    def _add_ranked(
        self, block: BidBlock, among: int, ctr_max: Ctr, scorer: RankedScorer, ranking: CtrRanking
    ) -> int:
        """Add bids per click, chunk by chunk; return how many were under the floor.

        Chunks that have neither some of the highest nor some under the floor are only counted.
        """
        span, bidders, strengths = (
            scorer.compute_span(block.placement_keys),
            block.bidders,
            ranking.bids.strengths,
        )
        refused = 0
        for chunk in ranking.chunks:
            mask = among & chunk.members
            if not mask:
                continue
            most = ranking.compute_ecpm_max(chunk.top, span.high)
            if most < compute_least_ecpm(block.floor_min):
                refused += mask.bit_count()
                continue
            is_among_highest = -most <= self._lowest_rank
            if is_among_highest or ranking.compute_ecpm_min(chunk, span.low, ctr_max) < compute_least_ecpm(
                block.floor_max
            ):
                refused += self._add_each(
                    block,
                    mask,
                    lambda position: scorer.predict_from_strength(bidders[position], strengths[position]),
                )
                if len(self._bids) > self._bids_max * SURPLUS:
                    self._cut()
        return refused

    def _add_lane(self, block: BidBlock, lane: Lane, among: int, scorer: Scorer, lowest_rank: int) -> None:
        """Add the bids of a lane, which are sorted."""
        bids, bidders, worths = self._bids, block.bidders, block.worths
        uniform_ctr = scorer.ctr_max if scorer.is_uniform else None
        # Inlines `compute_ecpm`, which would be called hundreds of times.
        factor, half, scale = 1, HALF_PER_IMPRESSION, PER_IMPRESSION
        if lane.is_per_click:
            factor, half, scale = scorer.ctr_max, HALF_PER_CLICK, PER_CLICK
        if -((worths[lane.start] * factor + half) // scale) > lowest_rank:
            return
        for added, position in enumerate(iter_positions(among & lane.members), 1):
            rank = -((worths[position] * factor + half) // scale)
            if rank > lowest_rank:
                break  # The rest of the lane is lower.
            one = bidders[position]
            bids.append((rank, one, uniform_ctr or scorer.predict_ctr(one)))
            if added == self._bids_max:
                lowest_rank = rank

    def _cut(self) -> None:
        """Drop the bids that are lower than the last of the highest."""
        bids, most = self._bids, self._bids_max
        bids.sort(key=_rank)
        if len(bids) > most:
            self._lowest_rank = bids[most - 1][0]
            del bids[bisect_right(bids, self._lowest_rank, lo=most, key=_rank) :]


def _get_seniority(bid: RankedBid) -> tuple[int, int, int]:
    return bid[1].seniority


def _mask_campaigns(campaign_keys: Collection[int], eligible_set: EligibleSet, number: int) -> int:
    ranks = [rank for key in campaign_keys for rank in eligible_set.ranks.get(key, ())]
    return sum(1 << rank % BLOCK_CANDIDATES_MAX for rank in ranks if rank // BLOCK_CANDIDATES_MAX == number)


def _mask_banners(banner_keys: Collection[int], block: BidBlock, among: int) -> int:
    if block.capped_banner_keys.isdisjoint(banner_keys):
        return 0
    mask, found = among & block.capped, 0
    while mask:
        lowest = mask & -mask
        if block.bidders[lowest.bit_length() - 1].banner_key in banner_keys:
            found |= lowest
        mask ^= lowest
    return found
