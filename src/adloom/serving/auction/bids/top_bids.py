"""The highest bids of a market in one block: most auctions are decided among them.

A market has many placements, and the blocks of each would have to be scanned for its highest bid. With the top
bids one scan is enough, and the other blocks matter only for bids that are not among them.
"""

# pure

from collections.abc import Generator
from operator import itemgetter
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

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
            built.append(TopBids(scoring, zone, tuple(blocks), members))
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
