"""The highest bids of a market once more, together: most auctions are decided among them.

A market has as many books as placements, and each would have to be looked into for its highest bid.
With a head one look is enough, and the books are only for who is not in it.
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
    """The highest bids of those placements of a market that look at a request alike."""

    scoring: str
    zone: ZoneInfo
    blocks: tuple[Block, ...]
    members: frozenset[tuple[int, int, int]]  # Who is in it, by the keys that tell bidders apart.

    def has(self, bidder: Bidder) -> bool:
        """Tell whether a bidder is in it."""
        return bidder.seniority in self.members


def build_top_bids(
    market: MarketPlacements, *, bidders_max: int = TOP_BIDS_MAX
) -> Generator[None, None, list[TopBids]]:
    """Put the highest bids of a market together, with pauses; one placement needs no head."""
    alike: dict[tuple[str, ZoneInfo], list[IndexedPlacement]] = {}
    for placement in market:
        alike.setdefault((placement.scoring, placement.zone), []).append(placement)
    heads: list[TopBids] = []
    for (scoring, zone), placements in alike.items():
        if len(placements) > 1:
            highest = yield from _highest(placements, bidders_max)
            blocks = yield from build_bid_blocks(highest)
            members = frozenset(one.seniority for one in highest)
            heads.append(TopBids(scoring, zone, tuple(blocks), members))
    return heads


def _highest(placements: list[IndexedPlacement], bidders_max: int) -> Generator[None, None, list[Bidder]]:
    highest: list[tuple[int, Bidder]] = []
    lowest = 0
    for placement in placements:
        for block in placement.blocks:
            yield
            assert isinstance(block, BidBlock), "what is auctioned has bids"
            known = len(highest)
            for is_per_click, _, start, end in block.lanes:
                factor = ORDINARY_CLICKS if is_per_click else 1
                for position in range(start, end):
                    worth = block.worths[position] * factor
                    if worth < lowest:
                        break  # The others of the lane have no more.
                    highest.append((worth, block.bidders[position]))
            if len(highest) == known:
                break  # The blocks behind it have no more.
            if len(highest) > 2 * bidders_max:
                highest = _cut(highest, bidders_max)
                lowest = highest[-1][0]
    return [one for _, one in _cut(highest, bidders_max)]


def _cut(bidders: list[tuple[int, Bidder]], bidders_max: int) -> list[tuple[int, Bidder]]:
    bidders.sort(key=itemgetter(0), reverse=True)
    return bidders[:bidders_max]
