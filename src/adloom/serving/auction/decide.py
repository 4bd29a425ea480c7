"""Finds the winner of an auction and its price: a pure function of the index, the request and the moment.

Blocks of bids are scanned in the order of the highest eCPM that a bid in them can have for this request. The
scan ends as soon as the next block can change neither the winner nor the second bid. The result is that of
`auction.run`, which looks at all bids one by one.
"""

# pure

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from operator import neg
from types import MappingProxyType
from typing import Final

import msgspec
from uuid_utils import UUID

from adloom.auction.bid import BidType, Ctr, OwnBids
from adloom.auction.price import (
    HALF_PER_CLICK,
    HALF_PER_IMPRESSION,
    PER_CLICK,
    PER_IMPRESSION,
    compute_charge,
    compute_click_hold,
    compute_ecpm,
    compute_final_price,
)
from adloom.auction.score import RankedBids, RankedScorer, Scorer
from adloom.core.money import IMPRESSIONS_PER_CPM, Micros, price_impression
from adloom.events.log.event import ChargedBy
from adloom.serving.auction.scan_plan import ScanStep
from adloom.serving.auction.strongest import StrongBlock, StrongestBids, StrongStep
from adloom.serving.index.bid_block import BidBlock, Bidder, lower_bidder
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context

NO_BID: Final = -1
OFFER_COST_MIN: Final = Micros(1)  # No bidder is shown for nothing.
FIRST_BIDS: Final = 96  # Of the strongest, eligible or not.
NO_CTR: Final = Ctr(0)  # Of bids per impression.
NO_MULTIPLIERS: Final[Mapping[int, float]] = MappingProxyType({})
NO_KEYS: Final[frozenset[int]] = frozenset()


class WinningBid(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The winner, and what it pays."""

    bidder: Bidder
    ecpm: Micros
    runner_up: Bidder | None  # The best bid that counts against it.
    second: Micros | None
    final: Micros
    charge: Micros  # Per click, or per thousand impressions.

    @property
    def capped_banner_ids(self) -> tuple[str, ...]:
        """The frequency-capped banners that the result depends on: leaving out any other changes nothing."""
        both = (self.bidder,) if self.runner_up is None else (self.bidder, self.runner_up)
        return tuple([str(UUID(bytes=one.pair[:16])) for one in both if one.frequency])


def decide(  # noqa: C901, PLR0913 - all that a request is
    steps: Sequence[ScanStep],
    contexts: Sequence[Context],
    scorers: Sequence[Scorer],
    *,
    strongest: Sequence[StrongStep] = (),
    own_bids: OwnBids = OwnBids.IGNORE,
    seen_enough: Collection[int] = NO_KEYS,
    unreserved: Collection[int] = NO_KEYS,
) -> tuple[WinningBid | None, int]:
    """Return the winner, and how many steps were scanned: bids of later steps could not change the result.

    Banners that the visitor has seen often enough, and campaigns that could not be reserved, take no part. The strongest
    bids of the market, if they are known, are scanned before all steps.
    """
    # All sets of a process share them.
    multipliers = steps[0].eligible_set.multipliers if steps else NO_MULTIPLIERS
    leader = _Leader(own_bids is OwnBids.COUNT, seen_enough, unreserved, multipliers)
    if strongest:
        if leader.compare_strongest(strongest, contexts, scorers):
            return leader.build_win(), 0
        if leader.is_counting_own:
            # The steps have the strongest bids again, and a bid must not be its own second.
            leader = _Leader(leader.is_counting_own, seen_enough, unreserved, multipliers)
    scanned = 0
    for bound, oldest, eligible_set, number, block, members, scorer_index, context_index in steps:
        if not bound:
            break  # No bid that is left can reach a floor.
        best = leader.best
        if (
            best is not None
            and bound <= leader.second
            and (bound < leader.ecpm or oldest > best.campaign_key)
        ):
            break
        scanned += 1
        scorer = scorers[scorer_index]
        if scorer.ranked is not None and leader.can_skip(block, scorer.ranked):
            continue
        eligible = eligible_set.available[number] & members
        if eligible:
            eligible = block.targeting.find_eligible(contexts[context_index], eligible)
        if multipliers:
            lowered = eligible & eligible_set.lowered[number]
            leader.compare_lowered(block, lowered, scorer, multipliers)
            eligible ^= lowered
        if eligible:
            leader.compare(block, eligible, scorer)
    return leader.build_win(), scanned


@dataclass(slots=True)
class _Leader:
    """The best bid so far, and the best bid of another payer."""

    is_counting_own: bool
    seen_enough: Collection[int]
    unreserved: Collection[int]
    multipliers: Mapping[int, float]
    best: Bidder | None = None
    ecpm: int = NO_BID
    runner_up: Bidder | None = None
    second: int = NO_BID
    payer: int | None = None  # Its other bids do not count as second.

    def can_skip(self, block: BidBlock, scorer: RankedScorer) -> bool:
        """Whether no bid of a ranked block can change anything."""
        ranking = block.rankings.get(scorer.strengths)
        if ranking is None or self.best is None:
            return False
        high = scorer.compute_span(block.placement_keys).high
        most = max(ranking.per_impression, ranking.compute_ecpm_max(ranking.chunks[0].top, high))
        return most <= self.second and most < self.ecpm

    def compare(self, block: BidBlock, eligible: int, scorer: Scorer) -> None:  # noqa: C901, PLR0912 - a call for each bid would cost more than the bid
        """Compare the bids of a block, as long as they can change anything."""
        if scorer.ranked is not None:
            eligible = self._compare_ranked(block, eligible, scorer.ranked)
        best, best_ecpm, payer = self.best, self.ecpm, self.payer
        runner_up, second = self.runner_up, self.second
        seen_enough, unreserved = self.seen_enough, self.unreserved
        ctr_max, bidders, worths, payers = scorer.ctr_max, block.bidders, block.worths, block.payers
        floor_min = block.floor_min
        is_simple = floor_min == block.floor_max and not seen_enough and not unreserved
        for is_per_click, members, _, end in block.lanes:
            is_uniform = scorer.is_uniform or not is_per_click
            needs_checks = not (is_uniform and is_simple)
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
                    break  # The rest of the lane is lower.
                if needs_checks:
                    one = bidders[position]
                    if one.banner_key in seen_enough or one.campaign_key in unreserved:
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
                    payer = None if self.is_counting_own else its_payer
                elif its_payer != payer:
                    if ecpm > second:
                        second, runner_up = ecpm, bidders[position]
                elif most < best_ecpm:
                    # The payer's other bids here can neither win nor count as second.
                    mask &= ~block.own_bids.get(its_payer, 0)
                if is_uniform and ecpm <= second and position + 1 < end and worths[position + 1] == worth:
                    # Equal bids of the lane are of younger campaigns: they change nothing.
                    next_lower = bisect_right(worths, -worth, lo=position, hi=end, key=neg)
                    mask = mask >> next_lower << next_lower
        self.best, self.ecpm, self.payer = best, best_ecpm, payer
        self.runner_up, self.second = runner_up, second

    def compare_lowered(
        self, block: BidBlock, lowered: int, scorer: Scorer, multipliers: Mapping[int, float]
    ) -> None:
        """Compare the bids of campaigns that bid less than their bid; by that, they are still in order."""
        for is_per_click, members, _, _ in block.lanes:
            bid_type = BidType.CPC if is_per_click else BidType.CPM
            mask = lowered & members
            while mask:
                lowest = mask & -mask
                position = lowest.bit_length() - 1
                mask ^= lowest
                most = compute_ecpm(bid_type, block.worths[position], scorer.ctr_max)
                if most < block.floor_min or not most or (most <= self.second and most < self.ecpm):
                    break  # The rest of the lane is lower, even in full.
                one = lower_bidder(block.bidders[position], multipliers)
                ctr = scorer.predict_ctr(one) if is_per_click else scorer.ctr_max
                self._compare_one(one, compute_ecpm(bid_type, one.worth, ctr))

    def _compare_ranked(self, block: BidBlock, eligible: int, scorer: RankedScorer) -> int:
        """Compare the ranked bids of a block; return the others."""
        ranking = block.rankings.get(scorer.strengths)
        if ranking is None:
            return eligible
        high = scorer.compute_span(block.placement_keys).high
        mine = eligible & ranking.members
        for top, _, _, members in ranking.chunks:
            most = ranking.compute_ecpm_max(top, high)
            if most < block.floor_min or (most <= self.second and most < self.ecpm):
                break  # The rest is lower.
            mask = mine & members
            if self.payer is not None and most < self.ecpm:
                # The payer's bids here can neither win nor count as second.
                mask &= ~block.own_bids.get(self.payer, 0)
            self._compare_ranked_bids(block, ranking.bids, mask, scorer)
        return eligible ^ mine

    def compare_strongest(
        self, steps: Sequence[StrongStep], contexts: Sequence[Context], scorers: Sequence[Scorer]
    ) -> bool:
        """Compare the strongest bids of a market; return whether no other bid can change anything."""
        for step in steps:
            self._compare_strong_blocks(step, contexts[step.context_index], scorers[step.scorer_index])
        return all(self._exceeds_rest(step.strongest, scorers[step.scorer_index]) for step in steps)

    def _compare_strong_blocks(self, step: StrongStep, context: Context, scorer: Scorer) -> None:
        """Compare strongest bids, as long as they can change anything."""
        ranked, eligible_set = scorer.ranked, step.eligible_set
        assert ranked is not None, "strongest bids are of a policy that has strengths"
        for number, block in enumerate(step.strongest.strong_blocks):
            bids, shown = block.rankings[ranked.strengths], (1 << block.shown) - 1
            reaching = self._mask_reaching(bids, ranked) if number else block.everyone
            eligible = eligible_set.available[number] & (reaching | shown)
            if eligible:
                eligible = block.targeting.find_eligible(context, eligible)
            lowered = eligible & eligible_set.lowered[number]
            if eligible & shown:
                self._compare_shown(block, eligible & shown, lowered)
            eligible &= ~shown
            if not number:
                # First some: they raise what the others need.
                first = eligible & self._mask_reaching(bids, ranked, FIRST_BIDS)
                self._compare_ranked_bids(block, bids, first, ranked, lowered)
                eligible &= self._mask_reaching(bids, ranked) & ~first
            self._compare_ranked_bids(block, bids, eligible, ranked, lowered)

    def _mask_reaching(
        self, bids: RankedBids, ranked: RankedScorer, bids_max: int = BLOCK_CANDIDATES_MAX
    ) -> int:
        to_count, _ = self._find_logs_needed(bids.worth_max)
        return ranked.mask_reaching(bids, to_count, bids_max)

    def _compare_shown(self, block: StrongBlock, eligible: int, lowered: int) -> None:
        """Compare bids per impression, the highest first."""
        for position in iter_positions(eligible):
            ecpm = compute_ecpm(BidType.CPM, block.worths[position], NO_CTR)
            if ecpm <= self.second and ecpm < self.ecpm:
                return  # The rest of them is lower.
            one = block.bidders[position]
            if lowered >> position & 1:
                one = lower_bidder(one, self.multipliers)
                ecpm = compute_ecpm(BidType.CPM, one.worth, NO_CTR)
            self._compare_one(one, ecpm)

    def _compare_ranked_bids(
        self,
        block: BidBlock | StrongBlock,
        bids: RankedBids,
        eligible: int,
        ranked: RankedScorer,
        lowered: int = 0,
    ) -> None:
        """Compare bids per click that may change something, by the bounds of `CtrRanking.compute_ecpm_max`."""
        if not eligible:
            return
        to_count, to_win = self._find_logs_needed(bids.worth_max)
        found = ranked.select(bids, iter_positions(eligible), to_count)
        # The highest first: it raises what the others need.
        for most, position, logit in sorted(found, reverse=True):
            if most < to_count:
                return
            if most < to_win and block.payers[position] == self.payer:
                continue
            one, worth = block.bidders[position], block.worths[position]
            if lowered >> position & 1:
                one = lower_bidder(one, self.multipliers)
                worth = one.worth
            factor = bids.strengths[position] * exp(logit)
            ctr = ranked.predict_from_factor(one.placement_key, factor)
            self._compare_one(one, (worth * ctr + HALF_PER_CLICK) // PER_CLICK)
            to_count, to_win = self._find_logs_needed(bids.worth_max)

    def _find_logs_needed(self, worth_max: int) -> tuple[float, float]:
        """Return how high the logarithm of worth times CTR must be to change anything, and to win."""
        to_win = (self.ecpm - 1) * PER_CLICK - worth_max
        to_count = min(self.second * PER_CLICK - worth_max, to_win)
        return log(to_count) if to_count > 0 else -inf, log(to_win) if to_win > 0 else -inf

    def _exceeds_rest(self, strongest: StrongestBids, scorer: Scorer) -> bool:
        """Whether no bid that is not among the strongest can change anything."""
        ranked = scorer.ranked
        assert ranked is not None, "strongest bids are of a policy that has strengths"
        cap, per_impression = strongest.rests[ranked.strengths]
        return (not cap or cap < self._find_cap_needed(strongest, ranked)) and (
            not per_impression or (per_impression <= self.second and per_impression < self.ecpm)
        )

    def _find_cap_needed(self, strongest: StrongestBids, ranked: RankedScorer) -> float:
        """Return the cap under which no bid per click changes anything; the bound is that of `CtrRanking.compute_ecpm_max`."""
        least = min(self.second, self.ecpm - 1) * PER_CLICK - strongest.worth_max
        return least / ranked.compute_span(strongest.placement_keys).high

    def _compare_one(self, one: Bidder, ecpm: int) -> None:
        if one.banner_key in self.seen_enough or one.campaign_key in self.unreserved:
            return
        if ecpm < one.floor or not ecpm:
            return
        best, payer = self.best, self.payer
        if best is None or ecpm > self.ecpm or (ecpm == self.ecpm and one.seniority < best.seniority):
            if best is not None and one.payer != payer:
                self.second, self.runner_up = self.ecpm, best
            self.best, self.ecpm = one, ecpm
            self.payer = None if self.is_counting_own else one.payer
        elif one.payer != payer and ecpm > self.second:
            self.second, self.runner_up = ecpm, one

    def build_win(self) -> WinningBid | None:
        best = self.best
        if best is None:
            return None
        ecpm = Micros(self.ecpm)
        to_exceed = None if self.runner_up is None else Micros(self.second)
        final = compute_final_price(ecpm, second=to_exceed, floor=best.floor)
        return WinningBid(
            bidder=best,
            ecpm=ecpm,
            runner_up=self.runner_up,
            second=to_exceed,
            final=final,
            charge=compute_charge(best.bid, ecpm=ecpm, final=final),
        )


def iter_positions(mask: int) -> Iterator[int]:
    """Iterate the set bits, the lowest first; by far the fastest way if there are many."""
    digits = bin(mask)[:1:-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)


def compute_offer_cost(win: WinningBid) -> Micros:
    """Return what the offer costs once it is seen or clicked, whichever it is charged by.

    An impression costs whole micros: never more than the bid for it, unless that is below one micro.
    """
    if win.bidder.price.charged_by is ChargedBy.CLICK:
        return win.charge
    bid_max = win.bidder.bid // IMPRESSIONS_PER_CPM
    return Micros(max(OFFER_COST_MIN, min(price_impression(win.charge), bid_max)))


def compute_offer_hold(win: WinningBid) -> Micros:
    """Return what the offer takes out of its lease: its cost, or what its click is expected to cost."""
    if win.bidder.price.charged_by is ChargedBy.CLICK:
        return compute_click_hold(win.bidder.bid, ecpm=win.ecpm, quality=win.bidder.quality)
    return compute_offer_cost(win)
