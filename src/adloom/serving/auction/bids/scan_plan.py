"""The order in which the blocks of a market are scanned: by the highest eCPM that a bid in them can have."""

# pure

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import ecpm_of, least_ecpm
from adloom.auction.score import Scorer
from adloom.core.money import Micros
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.index.bid_block import BidBlock


class ScanStep(NamedTuple):
    """A block to scan, and the highest eCPM in it."""

    bound: Micros  # No bid has a higher eCPM.
    oldest: int  # The oldest campaign among the bids that can have that eCPM.
    eligible_set: EligibleSet
    block_number: int  # In the eligible set.
    block: BidBlock
    members: int  # The others of the block are among the top bids.
    scorer_index: int  # Of the request's scorers.
    context_index: int  # Of its contexts: the hour differs by zone.


class BlockRef(NamedTuple):
    """A block of bids, and which scorer and context apply to it."""

    eligible_set: EligibleSet
    block_number: int
    block: BidBlock
    members: int
    scorer_index: int
    context_index: int


RETIRED: Final = -1


class ScanPlan:
    """The scan steps of a market for requests with the same CTR bounds."""

    def __init__(self, refs: Iterable[BlockRef], scorers: Sequence[Scorer]) -> None:
        self.steps = tuple(sorted((_build_step(ref, scorers) for ref in refs), key=_rank))
        self._over_floor: dict[int, int] = {}
        self._eligible_sets = tuple(dict.fromkeys(step.eligible_set for step in self.steps))
        self._checked_at = -1
        self._version = 0
        self.is_retired = False

    def version(self, changes: int) -> int:
        """Return the version of the eligible sets; `changes` counts those of all sets, of any market."""
        if changes != self._checked_at:
            self._checked_at = changes
            self._version = sum([each.change_count for each in self._eligible_sets])
        return RETIRED if self.is_retired else self._version

    def retire(self) -> None:
        """Its eligible sets were replaced: results from them are stale."""
        self.is_retired = True

    def mask_over_floor(self, number: int, ctr_max: Ctr) -> int:
        """Return which bids of a step's block can reach the floor, cached."""
        mask = self._over_floor.get(number)
        if mask is None:
            mask = self._over_floor[number] = _mask_over_floor(self.steps[number].block, ctr_max)
        return mask


def _build_step(ref: BlockRef, scorers: Sequence[Scorer]) -> ScanStep:
    bound, oldest = _find_top(ref, scorers[ref.scorer_index].ctr_max)
    if bound < least_ecpm(ref.block.floor_min):
        bound = Micros(0)  # No bid can win: the block is never scanned.
    return ScanStep(bound, oldest, *ref)


def _mask_over_floor(block: BidBlock, ctr_max: Ctr) -> int:
    found = 0
    for is_per_click, _, start, end in block.lanes:
        bid_type = BidType.CPC if is_per_click else BidType.CPM
        if block.floor_min == block.floor_max:
            least = -least_ecpm(block.floor_min)

            def rank(worth: int, bid_type: BidType = bid_type) -> int:
                return -ecpm_of(bid_type, worth, ctr_max)

            cut = bisect_right(block.worths, least, lo=start, hi=end, key=rank)
            found |= (1 << cut) - (1 << start)
        else:
            for position in range(start, end):
                ecpm = ecpm_of(bid_type, block.worths[position], ctr_max)
                if ecpm >= least_ecpm(block.bidders[position].floor):
                    found |= 1 << position
    return found


def _find_top(ref: BlockRef, ctr_max: Ctr) -> tuple[Micros, int]:
    """Return the highest eCPM that a bid can have, and the oldest campaign that can have it."""
    bidders, worths = ref.block.bidders, ref.block.worths
    top, oldest = Micros(0), 0
    for is_per_click, members, _, _ in ref.block.lanes:
        bid_type = BidType.CPC if is_per_click else BidType.CPM
        mask = ref.members & members
        while mask:
            lowest = mask & -mask
            position = lowest.bit_length() - 1
            mask ^= lowest
            ecpm, campaign_key = ecpm_of(bid_type, worths[position], ctr_max), bidders[position].campaign_key
            if ecpm < top:
                break
            oldest = campaign_key if ecpm > top else min(oldest, campaign_key)
            top = ecpm
    return top, oldest


def _rank(step: ScanStep) -> tuple[int, int]:
    return -step.bound, step.oldest
