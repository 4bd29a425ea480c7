"""Who wins an auction, and against whom: a pure function of the index, the request and the moment.

Blocks of bids are looked at in the order of the most that a bid in them can be worth for this request.
As soon as the next block can change neither who wins nor what the second bid is, nobody looks further.
The answer is that of `auction.run`, over all bids one by one.
"""

# pure

from bisect import bisect_right
from collections.abc import Collection, Sequence
from operator import neg
from typing import Final

import msgspec
from uuid_utils import UUID

from adloom.auction.bid import OwnBids
from adloom.auction.price import (
    HALF_PER_CLICK,
    HALF_PER_IMPRESSION,
    PER_CLICK,
    PER_IMPRESSION,
    charge_of,
    final_price,
)
from adloom.auction.score import RankedScorer, Scorer
from adloom.core.money import IMPRESSIONS_PER_CPM, Micros, impression_cost
from adloom.events.log.event import ChargedBy
from adloom.serving.auction.bids.scan_plan import ScanStep
from adloom.serving.index.bid_block import BidBlock, Bidder
from adloom.targeting.context import Context

NO_BID: Final = -1
OFFER_COST_MIN: Final = Micros(1)  # No bidder is shown for nothing.
NO_KEYS: Final[frozenset[int]] = frozenset()


class WinningBid(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who wins, and what it pays."""

    bidder: Bidder
    ecpm: Micros
    runner_up: Bidder | None  # The best bid that counts against it.
    second: Micros | None
    final: Micros
    charge: Micros  # Per click, or per thousand impressions.

    @property
    def capped_banner_ids(self) -> tuple[str, ...]:
        """Name the banners of which it matters how often the reader has seen them: nobody else's absence changes anything."""
        both = (self.bidder,) if self.runner_up is None else (self.bidder, self.runner_up)
        return tuple([str(UUID(bytes=one.pair[:16])) for one in both if one.frequency])


def decide(  # noqa: PLR0913 - all that a request is
    looks: Sequence[ScanStep],
    contexts: Sequence[Context],
    scorers: Sequence[Scorer],
    *,
    own_bids: OwnBids = OwnBids.IGNORE,
    seen_enough: Collection[int] = NO_KEYS,
    without: Collection[int] = NO_KEYS,
) -> tuple[WinningBid | None, int]:
    """Find the winner, and tell after how many looks: who is not in those could not change anything.

    Banners that the reader has seen often enough and some campaigns take no part.
    """
    lead = _Lead(own_bids, seen_enough, without)
    looked = 0
    for bound, oldest, stock, number, block, looked_at, which, where in looks:
        if not bound:
            break  # Nobody who is left can reach a floor.
        best = lead.best
        if best is not None and bound <= lead.second and (bound < lead.ecpm or oldest > best.campaign_key):
            break
        looked += 1
        scorer = scorers[which]
        if scorer.ranked is not None and lead.is_beyond(block, scorer.ranked):
            continue
        eligible = stock.available[number] & looked_at
        if eligible:
            eligible = block.targeting.find_eligible(contexts[where], eligible)
        if eligible:
            lead.hear(block, eligible, scorer)
    if lead.best is None:
        return None, looked
    return _won(lead.best, lead.ecpm, lead.runner_up, lead.second), looked


class _Lead:
    """Who leads so far, and the best bid of somebody else."""

    __slots__ = (
        "_is_counting_own",
        "_payer",
        "_seen_enough",
        "_without",
        "best",
        "ecpm",
        "runner_up",
        "second",
    )

    def __init__(self, own_bids: OwnBids, seen_enough: Collection[int], without: Collection[int]) -> None:
        self._is_counting_own = own_bids is OwnBids.COUNT
        self._seen_enough = seen_enough
        self._without = without
        self.best: Bidder | None = None
        self.ecpm = NO_BID
        self.runner_up: Bidder | None = None
        self.second = NO_BID
        self._payer: int | None = None  # Whose bids do not count as the second.

    def is_beyond(self, block: BidBlock, scorer: RankedScorer) -> bool:
        """Tell whether no bid of a block can change anything, as far as it is ranked."""
        ranking = block.rankings.get(scorer.strengths)
        if ranking is None or self.best is None:
            return False
        high = scorer.span(block.placement_keys).high
        most = max(ranking.per_impression, ranking.max_ecpm(ranking.chunks[0].top, high))
        return most <= self.second and most < self.ecpm

    def hear(self, block: BidBlock, eligible: int, scorer: Scorer) -> None:  # noqa: C901, PLR0912 - a call for each bid would cost more than the bid
        """Hear the bids of a block, as long as they can change anything."""
        if scorer.ranked is not None:
            eligible = self._hear_ranked(block, eligible, scorer.ranked)
        best, best_ecpm, payer = self.best, self.ecpm, self._payer
        runner_up, second = self.runner_up, self.second
        seen_enough, without = self._seen_enough, self._without
        ctr_max, bidders, worths, payers = scorer.ctr_max, block.bidders, block.worths, block.payers
        floor_min = block.floor_min
        is_everybody_alike = floor_min == block.floor_max and not seen_enough and not without
        for is_per_click, members, _, end in block.lanes:
            is_uniform = scorer.is_uniform or not is_per_click
            is_looked_at = not (is_uniform and is_everybody_alike)
            mask = eligible & members
            while mask:
                lowest = mask & -mask
                position = lowest.bit_length() - 1
                mask ^= lowest
                worth = worths[position]
                if is_per_click:
                    most = ecpm = (worth * ctr_max + HALF_PER_CLICK) // PER_CLICK
                else:
                    most = ecpm = (worth + HALF_PER_IMPRESSION) // PER_IMPRESSION
                if most < floor_min or not most or (most <= second and most < best_ecpm):
                    break  # The others of the lane have no more.
                if is_looked_at:
                    one = bidders[position]
                    if one.banner_key in seen_enough or one.campaign_key in without:
                        continue
                    if not is_uniform:
                        ecpm = (worth * scorer.predict_ctr(one) + HALF_PER_CLICK) // PER_CLICK
                    if ecpm < one.floor or not ecpm:
                        continue
                its_payer = payers[position]
                if (
                    best is None
                    or ecpm > best_ecpm
                    or (ecpm == best_ecpm and bidders[position].seniority < best.seniority)
                ):
                    if best is not None and its_payer != payer:
                        second, runner_up = best_ecpm, best
                    best, best_ecpm = bidders[position], ecpm
                    payer = None if self._is_counting_own else its_payer
                elif its_payer != payer:
                    if ecpm > second:
                        second, runner_up = ecpm, bidders[position]
                elif most < best_ecpm:
                    # None of the others that the winner's advertiser has here can win, and they do not count.
                    mask &= ~block.own_bids.get(its_payer, 0)
                if is_uniform and ecpm <= second and position + 1 < end and worths[position + 1] == worth:
                    # Those of the lane who bid the same are younger: they change nothing any more.
                    next_lower = bisect_right(worths, -worth, lo=position, hi=end, key=neg)
                    mask = mask >> next_lower << next_lower
        self.best, self.ecpm, self._payer = best, best_ecpm, payer
        self.runner_up, self.second = runner_up, second

    def _hear_ranked(self, block: BidBlock, eligible: int, scorer: RankedScorer) -> int:
        """Hear those bids of a block that are ranked; give the others."""
        ranking = block.rankings.get(scorer.strengths)
        if ranking is None:
            return eligible
        high = scorer.span(block.placement_keys).high
        mine = eligible & ranking.members
        for top, _, _, members in ranking.chunks:
            most = ranking.max_ecpm(top, high)
            if most < block.floor_min or (most <= self.second and most < self.ecpm):
                break  # The others have no more.
            mask = mine & members
            if self._payer is not None and most < self.ecpm:
                # None that the winner's advertiser has here can win, and they do not count.
                mask &= ~block.own_bids.get(self._payer, 0)
            while mask:
                lowest = mask & -mask
                position = lowest.bit_length() - 1
                mask ^= lowest
                most = ranking.max_ecpm(ranking.caps[position], high)
                if most > self.second or most >= self.ecpm:
                    one = block.bidders[position]
                    ctr = scorer.predict_from_strength(one, ranking.strengths[position])
                    self._hear_one(one, (block.worths[position] * ctr + HALF_PER_CLICK) // PER_CLICK)
        return eligible ^ mine

    def _hear_one(self, one: Bidder, ecpm: int) -> None:
        if one.banner_key in self._seen_enough or one.campaign_key in self._without:
            return
        if ecpm < one.floor or not ecpm:
            return
        best, payer = self.best, self._payer
        if best is None or ecpm > self.ecpm or (ecpm == self.ecpm and one.seniority < best.seniority):
            if best is not None and one.payer != payer:
                self.second, self.runner_up = self.ecpm, best
            self.best, self.ecpm = one, ecpm
            self._payer = None if self._is_counting_own else one.payer
        elif one.payer != payer and ecpm > self.second:
            self.second, self.runner_up = ecpm, one


def _won(best: Bidder, best_ecpm: int, runner_up: Bidder | None, second: int) -> WinningBid:
    ecpm = Micros(best_ecpm)
    to_exceed = None if runner_up is None else Micros(second)
    final = final_price(ecpm, second=to_exceed, floor=best.floor)
    return WinningBid(
        bidder=best,
        ecpm=ecpm,
        runner_up=runner_up,
        second=to_exceed,
        final=final,
        charge=charge_of(best.bid, ecpm=ecpm, final=final),
    )


def offer_cost(win: WinningBid) -> Micros:
    """Return what the offer costs once it is seen or clicked, whichever it is charged by.

    An impression costs whole micros: never more than the bid for it, unless that is below one micro.
    """
    if win.bidder.price.charged_by is ChargedBy.CLICK:
        return win.charge
    bid_max = win.bidder.bid // IMPRESSIONS_PER_CPM
    return Micros(max(OFFER_COST_MIN, min(impression_cost(win.charge), bid_max)))
