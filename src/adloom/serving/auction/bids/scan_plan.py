"""In which order the bids of a market are looked at: by the most that they can be worth for a request."""

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
    """A block of bids, and the most that can be in it for a request."""

    bound: Micros  # No bid has a higher eCPM.
    oldest: int  # Among the bids that can have that much, the oldest campaign.
    eligible_set: EligibleSet
    block_number: int  # Of the block, in the stock.
    block: BidBlock
    members: int  # Who of the block is looked at here; the others are elsewhere.
    scorer_index: int  # Which of the request's scorers is asked.
    context_index: int  # Which of its contexts counts: the hour differs by zone.


class BlockRef(NamedTuple):
    """A block of bids, and what of a request is looked at for it."""

    eligible_set: EligibleSet
    block_number: int
    block: BidBlock
    members: int
    scorer_index: int
    context_index: int


RETIRED: Final = -1


class ScanPlan:
    """The blocks of a market, in the order in which they are looked at for requests with the same CTRs."""

    def __init__(self, lots: Iterable[BlockRef], scorers: Sequence[Scorer]) -> None:
        self.steps = tuple(sorted((_look(lot, scorers) for lot in lots), key=_first_of_all))
        self._over_floor: dict[int, int] = {}
        self._stocks = tuple(dict.fromkeys(look.eligible_set for look in self.steps))
        self._turnover = -1
        self._turns = 0
        self.is_retired = False

    def version(self, turnover: int) -> int:
        """Give a number to who is there: while it is the same, so are they. `turnover` is that of all stocks."""
        if turnover != self._turnover:
            self._turnover = turnover
            self._turns = sum([stock.change_count for stock in self._stocks])
        return RETIRED if self.is_retired else self._turns

    def retire(self) -> None:
        """Hear that other stocks have taken the place of these: what was decided from them is over."""
        self.is_retired = True

    def mask_over_floor(self, turn: int, ctr_max: Ctr) -> int:
        """Tell who of the block whose turn it is can reach the floor; it is found out once."""
        mask = self._over_floor.get(turn)
        if mask is None:
            mask = self._over_floor[turn] = _over_floor(self.steps[turn].block, ctr_max)
        return mask


def _look(lot: BlockRef, scorers: Sequence[Scorer]) -> ScanStep:
    bound, oldest = _top(lot, scorers[lot.scorer_index].ctr_max)
    if bound < least_ecpm(lot.block.floor_min):
        bound = Micros(0)  # Nobody can win with it, and nobody has to look.
    return ScanStep(bound, oldest, *lot)


def _over_floor(block: BidBlock, ctr_max: Ctr) -> int:
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


def _top(lot: BlockRef, ctr_max: Ctr) -> tuple[Micros, int]:
    """Tell the most that a bid can be worth, and the oldest campaign that can have so much."""
    bidders, worths = lot.block.bidders, lot.block.worths
    top, oldest = Micros(0), 0
    for is_per_click, members, _, _ in lot.block.lanes:
        bid_type = BidType.CPC if is_per_click else BidType.CPM
        mask = lot.members & members
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


def _first_of_all(look: ScanStep) -> tuple[int, int]:
    return -look.bound, look.oldest
