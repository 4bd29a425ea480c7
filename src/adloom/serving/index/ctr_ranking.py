"""The bids per click of a block, ranked before any request, so that few CTRs have to be predicted.

A policy may know the strength of an ad, which is the same in every request. Then the eCPM of a bid lies within a
range of its cap, `worth * strength`: bids are put into chunks in the order of their caps, and a search for the
highest stops where no cap can reach it. A ranking depends on the model, so it is built again in the background
when the model changes; a block without a ranking is searched bid by bid.
"""

from array import array
from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from adloom.auction.bid import Ctr
from adloom.auction.price import PER_CLICK
from adloom.auction.score import AdFeatures, Strengths
from adloom.core.money import Micros

CHUNK_BIDS: Final = 32
BIDS_A_STEP: Final = 64


class RankedChunk(NamedTuple):
    """Bids of a block with neighbouring caps."""

    top: float  # Highest cap.
    bottom: float
    worth_min: int
    members: int


class CtrRanking(NamedTuple):
    """The bids per click of a block in chunks, the highest caps first; caps and strengths by position."""

    members: int
    chunks: Sequence[RankedChunk]
    caps: Sequence[float]
    strengths: Sequence[float]
    worth_max: int
    per_impression: Micros  # The highest eCPM of the bids per impression of the block.

    def max_ecpm(self, cap: float, high: float) -> int:
        """Return an eCPM that no bid with this cap exceeds, by the upper end of a range."""
        return int((cap * high + self.worth_max) / PER_CLICK) + 1

    def min_ecpm(self, chunk: RankedChunk, low: float, ctr_max: Ctr) -> int:
        """Return an eCPM that every bid of a chunk reaches, by the lower end of a range."""
        within = min(chunk.worth_min * ctr_max, chunk.bottom * low - self.worth_max)
        return int(within / PER_CLICK) - 1


def build_ranking(
    ads: Sequence[AdFeatures],
    worths: Sequence[int],
    lane: range,
    *,
    per_impression: Micros,
    strengths: Strengths,
) -> Generator[None, None, CtrRanking]:
    """Rank the bids of a lane, with pauses; the first has the highest worth."""
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
            _build_chunk(worths, caps, ranked[start : start + CHUNK_BIDS])
            for start in range(0, len(ranked), CHUNK_BIDS)
        ),
        caps=caps,
        strengths=strong,
        worth_max=worths[lane.start],
        per_impression=per_impression,
    )


def _build_chunk(worths: Sequence[int], caps: Sequence[float], positions: Sequence[int]) -> RankedChunk:
    return RankedChunk(
        top=caps[positions[0]],
        bottom=caps[positions[-1]],
        worth_min=min(worths[position] for position in positions),
        members=sum(1 << position for position in positions),
    )
