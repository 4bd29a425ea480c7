"""The bids of a market that are worth most by a learned model, in that order, in blocks of their own.

With learned CTRs the highest bids are not the likely winners: a lower bid for an ad that is clicked more is worth more.
What a bid is worth for any request is its cap, `worth * strength`. So the highest caps of a market are collected when a
model or the catalog changes, and most auctions are decided among them: no other block is looked at. The first request of
a device and an hour puts them in order by what they can be worth to such visitors, whatever their segment; then only those
that can reach the second bid are looked at. Bids per impression, whose eCPM is the same for all, are collected by worth.
"""

# pure

from array import array
from collections.abc import Generator, Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from adloom.auction.bid import BidType, Ctr
from adloom.auction.price import compute_ecpm
from adloom.auction.score import RankedBids, Strengths
from adloom.core.money import Micros
from adloom.serving.auction.scan_plan import TopBids
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.index.bid_block import BidBlock, Bidder, CtrRanking, rank_bids
from adloom.serving.index.index import Block
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX, compile_in_steps

# In `adloom bench decisions` 630 of 12,500 can reach the second bid at most; 2,600 could whatever the device and the hour.
STRONGEST_MAX: Final = 3 * BLOCK_CANDIDATES_MAX
PER_IMPRESSION_SHARE: Final = (
    12  # One of so many is per impression: their eCPM is known, so few are looked at.
)


class StrongBlock(Block, frozen=True, kw_only=True, eq=False):
    """First bids per impression, the highest first; then bids per click, the highest caps first."""

    bidders: tuple[Bidder, ...]  # The candidates.
    worths: tuple[int, ...]
    payers: Sequence[int]
    shown: int  # So many bids are per impression.
    rankings: dict[Strengths, RankedBids]  # Of the bids per click.


class Rest(NamedTuple):
    """The bids of a market that are not among the strongest: the highest cap, and the highest eCPM per impression."""

    cap: float
    per_impression: Micros


class StrongestBids(msgspec.Struct, frozen=True, eq=False):
    """The strongest bids of those placements of a market that share a policy and a zone."""

    blocks: tuple[Block, ...]
    strong_blocks: tuple[StrongBlock, ...]  # The same.
    taken: Sequence[int]  # For each block of the placements, which of its bids are among them.
    placement_keys: tuple[int, ...]
    worth_max: int  # Of all bids per click of the market.
    per_impression: Micros  # The highest eCPM of bids per impression that are not among them.
    rests: dict[Strengths, Rest]


class StrongStep(NamedTuple):
    """The strongest bids of a part of a market, to be scanned."""

    eligible_set: EligibleSet
    strongest: StrongestBids  # Its candidates.
    scorer_index: int
    context_index: int


def is_worthwhile(top: TopBids) -> bool:
    """Whether some bids of a market are not among its highest: else those are ranked, and there is no need for more."""
    return sum(len(block.candidates) for one in top.placements for block in one.blocks) > len(top.members)


def collect_strongest(
    top: TopBids, strengths: Strengths, *, bidders_max: int = STRONGEST_MAX
) -> Generator[None, None, StrongestBids]:
    """Collect the strongest bids of ranked blocks, with pauses; `order_by` makes them usable."""
    blocks = _list_blocks(top)
    shown_max = max(1, bidders_max // PER_IMPRESSION_SHARE)
    clicks = yield from _collect(_iter_clicks(blocks, strengths), max(1, bidders_max - shown_max))
    shown = yield from _collect(_iter_shown(blocks), shown_max + 1)
    # The last one is the highest of those that are left.
    per_impression = Micros(0)
    if len(shown) > shown_max:
        worth, _, _ = shown.pop()
        per_impression = compute_ecpm(BidType.CPM, int(worth), Ctr(0))
    ordered, taken = [*shown, *clicks], [0] * len(blocks)
    for _, number, position in ordered:
        taken[number] |= 1 << position
    strong_blocks: list[StrongBlock] = []
    for start in range(0, len(ordered), BLOCK_CANDIDATES_MAX):
        bids = ordered[start : start + BLOCK_CANDIDATES_MAX]
        built = yield from _build_block([blocks[number].bidders[position] for _, number, position in bids])
        strong_blocks.append(built)
    return StrongestBids(
        blocks=tuple(strong_blocks),
        strong_blocks=tuple(strong_blocks),
        taken=taken,
        placement_keys=tuple(one.key for one in top.placements),
        worth_max=max(
            (block.rankings[strengths].worth_max for block in blocks if strengths in block.rankings),
            default=0,
        ),
        per_impression=per_impression,
        rests={},
    )


def find_strongest(top: TopBids) -> dict[Strengths, tuple[EligibleSet, StrongestBids]]:
    """Return the strongest bids by all strengths that they are in order by."""
    return {
        strengths: (each, each.candidates)
        for each in top.strongest.values()
        if isinstance(each.candidates, StrongestBids)
        for strengths in each.candidates.rests
    }


def order_by(top: TopBids, strengths: Strengths) -> Generator[None, None, None]:
    """Note what the strongest bids of a model are worth by some of its strengths, by which all blocks are ranked."""
    strongest = top.strongest[strengths.base].candidates
    if not isinstance(strongest, StrongestBids) or strengths in strongest.rests:
        return
    for block in strongest.strong_blocks:
        lane = range(block.shown, len(block.bidders))
        _, block.rankings[strengths] = yield from rank_bids(
            block.bidders, block.worths, lane, strengths, strongest.placement_keys
        )
    rest = 0.0
    for block, taken in zip(_list_blocks(top), strongest.taken, strict=True):
        yield
        ranking = block.rankings.get(strengths)
        if ranking is not None:
            rest = max(rest, _find_rest(ranking, taken))
    strongest.rests[strengths] = Rest(rest, strongest.per_impression)


# What decides whether a bid is taken, the number of its block, and its position there.
_Bid = tuple[float, int, int]


def _list_blocks(top: TopBids) -> list[BidBlock]:
    return [block for one in top.placements for block in one.blocks if isinstance(block, BidBlock)]


def _collect(bids: "Iterable[list[_Bid]]", bids_max: int) -> Generator[None, None, list[_Bid]]:
    """Return the highest bids of some lists, in order."""
    highest: list[_Bid] = []
    lowest = 0.0
    for some in bids:
        yield
        highest += [one for one in some if one[0] >= lowest]
        if len(highest) > 2 * bids_max:
            highest.sort(key=itemgetter(0), reverse=True)
            del highest[bids_max:]
            lowest = highest[-1][0]
    highest.sort(key=itemgetter(0), reverse=True)
    return highest[:bids_max]


def _iter_clicks(blocks: Sequence[BidBlock], strengths: Strengths) -> Iterable[list[_Bid]]:
    for number, block in enumerate(blocks):
        ranking = block.rankings.get(strengths)
        for is_per_click, _, start, end in block.lanes:
            if is_per_click and ranking is not None:
                yield [(ranking.caps[position], number, position) for position in range(start, end)]


def _iter_shown(blocks: Sequence[BidBlock]) -> Iterable[list[_Bid]]:
    for number, block in enumerate(blocks):
        for is_per_click, _, start, end in block.lanes:
            if not is_per_click:
                yield [(block.worths[position], number, position) for position in range(start, end)]


def _build_block(bidders: Sequence[Bidder]) -> Generator[None, None, StrongBlock]:
    candidates = tuple(bidders)
    targeting = yield from compile_in_steps([one.rules for one in candidates])
    return StrongBlock(
        candidates=candidates,
        targeting=targeting,
        everyone=(1 << len(candidates)) - 1,
        timed=tuple(number for number, one in enumerate(candidates) if one.timing is not None),
        bidders=candidates,
        worths=tuple(one.worth for one in candidates),
        payers=array("q", [one.payer for one in candidates]),
        shown=sum(one.bid_type is BidType.CPM for one in candidates),
        rankings={},
    )


def _find_rest(ranking: CtrRanking, taken: int) -> float:
    """Return the highest cap of the bids that were not taken."""
    for chunk in ranking.chunks:
        left = chunk.members & ~taken
        if left:
            caps = ranking.caps
            return max(caps[position] for position in range(left.bit_length()) if left >> position & 1)
    return 0.0
