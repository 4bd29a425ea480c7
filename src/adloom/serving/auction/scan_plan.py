"""The order in which the blocks of a market are scanned: by the highest eCPM that a bid in them can have.

A market has many placements, and the blocks of each would have to be scanned for its highest bid. So the highest bids of
a market are in blocks of their own, among which most auctions are decided; the other blocks matter only for the rest.
"""

# pure

from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import compute_ecpm, compute_least_ecpm
from adloom.auction.score import Scorer, Strengths
from adloom.core.money import Micros
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.index.bid_block import ORDINARY_CLICKS, BidBlock, Bidder, build_bid_blocks
from adloom.serving.index.index import Block, IndexedPlacement, MarketPlacements
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX

TOP_BIDS_MAX: Final = BLOCK_CANDIDATES_MAX


class TopBids(msgspec.Struct, frozen=True, eq=False):
    """The highest bids of those placements of a market that share a policy and a zone."""

    scoring: str
    zone: ZoneInfo
    blocks: tuple[Block, ...]
    members: frozenset[tuple[int, int, int]]  # By the keys that identify bidders.
    placements: tuple[IndexedPlacement, ...]
    # By the strengths of a model, its highest bids once more, in the order of what they are worth by these.
    strongest: dict[Strengths, EligibleSet]


def build_top_bids(
    market_placements: MarketPlacements, *, bidders_max: int = TOP_BIDS_MAX
) -> Generator[None, None, list[TopBids]]:
    """Collect the highest bids of a market, with pauses; a placement on its own needs none."""
    alike: dict[tuple[str, ZoneInfo], list[IndexedPlacement]] = {}
    for placement in market_placements:
        alike.setdefault((placement.scoring, placement.zone), []).append(placement)
    built: list[TopBids] = []
    for (scoring, zone), placements in alike.items():
        if len(placements) > 1:
            highest = yield from _collect_highest(placements, bidders_max)
            blocks = yield from build_bid_blocks(highest)
            members = frozenset(one.seniority for one in highest)
            built.append(TopBids(scoring, zone, tuple(blocks), members, tuple(placements), {}))
    return built


def _collect_highest(
    placements: list[IndexedPlacement], bidders_max: int
) -> Generator[None, None, list[Bidder]]:
    highest: list[tuple[int, Bidder]] = []
    lowest = 0
    for placement in placements:
        for block in placement.blocks:
            yield
            assert isinstance(block, BidBlock), "auctioned placements have bids"
            known = len(highest)
            for is_per_click, _, start, end in block.lanes:
                factor = ORDINARY_CLICKS if is_per_click else 1
                for position in range(start, end):
                    worth = block.worths[position] * factor
                    if worth < lowest:
                        break  # The rest of the lane is lower.
                    highest.append((worth, block.bidders[position]))
            if len(highest) == known:
                break  # The following blocks are lower.
            if len(highest) > 2 * bidders_max:
                highest = _cut(highest, bidders_max)
                lowest = highest[-1][0]
    return [one for _, one in _cut(highest, bidders_max)]


def _cut(bidders: list[tuple[int, Bidder]], bidders_max: int) -> list[tuple[int, Bidder]]:
    bidders.sort(key=itemgetter(0), reverse=True)
    return bidders[:bidders_max]


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

    def compute_version(self, changes: int) -> int:
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
    if bound < compute_least_ecpm(ref.block.floor_min):
        bound = Micros(0)  # No bid can win: the block is never scanned.
    return ScanStep(bound, oldest, *ref)


def _mask_over_floor(block: BidBlock, ctr_max: Ctr) -> int:
    found = 0
    for is_per_click, _, start, end in block.lanes:
        bid_type = BidType.CPC if is_per_click else BidType.CPM
        if block.floor_min == block.floor_max:
            least = -compute_least_ecpm(block.floor_min)

            def rank(worth: int, bid_type: BidType = bid_type) -> int:
                return -compute_ecpm(bid_type, worth, ctr_max)

            cut = bisect_right(block.worths, least, lo=start, hi=end, key=rank)
            found |= (1 << cut) - (1 << start)
        else:
            for position in range(start, end):
                ecpm = compute_ecpm(bid_type, block.worths[position], ctr_max)
                if ecpm >= compute_least_ecpm(block.bidders[position].floor):
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
            ecpm, campaign_key = (
                compute_ecpm(bid_type, worths[position], ctr_max),
                bidders[position].campaign_key,
            )
            if ecpm < top:
                break
            oldest = campaign_key if ecpm > top else min(oldest, campaign_key)
            top = ecpm
    return top, oldest


def _rank(step: ScanStep) -> tuple[int, int]:
    return -step.bound, step.oldest
