"""The bids per click of a block, ranked before any request: where ads differ, few of them have to be asked for.

A policy may know of each ad what is the same in every request, its strength. Then what a bid can be worth
for a request lies within a span of its cap, `worth * strength`: so the bids are put into pieces in the order
of their caps, and who looks for the highest stops where no cap can reach it. It depends on what the policy
has learned, so it is made anew when that changes, in the background; a block without is searched bid by bid.
"""

from array import array
from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from adloom.auction.bid import Ctr
from adloom.auction.price import PER_CLICK
from adloom.auction.score import ScoredAd, Strengths
from adloom.core.money import Micros

CHUNK_BIDS: Final = 32
BIDS_A_STEP: Final = 64


class RankedChunk(NamedTuple):
    """Bids of a block whose caps are next to each other."""

    top: float  # Of the caps.
    bottom: float
    worth_min: int
    members: int


class CtrRanking(NamedTuple):
    """The bids per click of a block, in pieces, the highest caps first; by position, their caps and strengths."""

    members: int
    chunks: Sequence[RankedChunk]
    caps: Sequence[float]
    strengths: Sequence[float]
    worth_max: int
    per_impression: Micros  # The highest eCPM of the others of the block.

    def max_ecpm(self, cap: float, high: float) -> int:
        """Tell an eCPM that no bid with a cap exceeds, by the upper end of a span."""
        return int((cap * high + self.worth_max) / PER_CLICK) + 1

    def min_ecpm(self, piece: RankedChunk, low: float, ctr_max: Ctr) -> int:
        """Tell an eCPM that every bid of a piece has, by the lower end of a span."""
        within = min(piece.worth_min * ctr_max, piece.bottom * low - self.worth_max)
        return int(within / PER_CLICK) - 1


def build_ranking(
    ads: Sequence[ScoredAd],
    worths: Sequence[int],
    lane: range,
    *,
    per_impression: Micros,
    strengths: Strengths,
) -> Generator[None, None, CtrRanking]:
    """Rank the bids of a lane, with pauses; the first of them is worth most."""
    strong, caps = array("d", bytes(8 * lane.stop)), array("d", bytes(8 * lane.stop))
    for position in lane:
        if position % BIDS_A_STEP == 0:
            yield
        strong[position] = strengths.compute_strength(ads[position])
        caps[position] = worths[position] * strong[position]
    ranked = sorted(lane, key=caps.__getitem__, reverse=True)
    yield
    return CtrRanking(
        members=(1 << lane.stop) - (1 << lane.start),
        chunks=tuple(
            _piece(worths, caps, ranked[start : start + CHUNK_BIDS])
            for start in range(0, len(ranked), CHUNK_BIDS)
        ),
        caps=caps,
        strengths=strong,
        worth_max=worths[lane.start],
        per_impression=per_impression,
    )


def _piece(worths: Sequence[int], caps: Sequence[float], positions: Sequence[int]) -> RankedChunk:
    return RankedChunk(
        top=caps[positions[0]],
        bottom=caps[positions[-1]],
        worth_min=min(worths[position] for position in positions),
        members=sum(1 << position for position in positions),
    )
