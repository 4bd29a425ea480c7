"""The bids of a placement, compiled into blocks in the order of their worth.

How a bid per click compares to one per impression depends on the request. So each block has a lane for either
kind, in which the highest bid comes first for every request with one CTR for all ads.

A policy may know the strength of an ad, which is the same in every request. Then the eCPM of a bid lies within a
range of its cap, `worth * strength`: bids per click are ranked before any request, in chunks in the order of their
caps, and a search for the highest stops where no cap can reach it. A ranking depends on the model, so it is built again
in the background when the model changes; a block without a ranking is searched bid by bid.
"""

# pure

from array import array
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Final, NamedTuple

import msgspec

from adloom.auction.bid import BidType, Ctr, Quality, find_payer
from adloom.auction.features import hash_banner
from adloom.auction.price import PER_CLICK, compute_ecpm, compute_worth
from adloom.auction.score import AdFeatures, AdFormat, RankedBids, Strengths, rate_quality
from adloom.core.money import Micros
from adloom.serving.index.index import Block, Candidate
from adloom.serving.index.rendered_banner import build_destination, encode_members
from adloom.serving.index.rows import AssignmentRow, PlacementRow
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX, compile_in_steps

CHUNK_BIDS: Final = 32
BIDS_A_STEP: Final = 64


class RankedChunk(NamedTuple):
    """Bids of a block with neighbouring caps."""

    top: float  # Highest cap.
    bottom: float
    worth_min: int
    members: int


class CtrRanking(NamedTuple):
    """The bids per click of a block in chunks, the highest caps first; caps by position."""

    members: int
    chunks: Sequence[RankedChunk]
    caps: Sequence[float]
    bids: RankedBids
    worth_max: int
    per_impression: Micros  # The highest eCPM of the bids per impression of the block.

    def compute_ecpm_max(self, cap: float, high: float) -> int:
        """Return an eCPM that no bid with this cap exceeds, by the upper end of a range."""
        return int((cap * high + self.worth_max) / PER_CLICK) + 1

    def compute_ecpm_min(self, chunk: RankedChunk, low: float, ctr_max: Ctr) -> int:
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
    caps, bids = yield from rank_bids(ads, worths, lane, strengths)
    ranked = sorted(lane, key=caps.__getitem__, reverse=True)
    yield
    return CtrRanking(
        members=(1 << lane.stop) - (1 << lane.start),
        chunks=tuple(
            _build_chunk(worths, caps, ranked[start : start + CHUNK_BIDS])
            for start in range(0, len(ranked), CHUNK_BIDS)
        ),
        caps=caps,
        bids=bids,
        worth_max=worths[lane.start],
        per_impression=per_impression,
    )


def rank_bids(
    ads: Sequence[AdFeatures],
    worths: Sequence[int],
    lane: range,
    strengths: Strengths,
    placement_keys: tuple[int, ...] | None = None,
) -> Generator[None, None, tuple[Sequence[float], RankedBids]]:
    """Compute what bids of a lane are worth by some strengths, with pauses: their caps by position, and the rest."""
    strong, caps, log_caps = (array("d", bytes(8 * lane.stop)) for _ in range(3))
    banner_hashes, numbers = array("I", bytes(4 * lane.stop)), array("I", bytes(4 * lane.stop))
    if placement_keys is None:
        placement_keys = tuple(dict.fromkeys(ads[position].placement_key for position in lane))
    number_of = {key: number for number, key in enumerate(placement_keys)}
    for position in lane:
        if position % BIDS_A_STEP == 0:
            yield
        ad = ads[position]
        strong[position] = strengths.compute_strength(ad)
        caps[position] = worths[position] * strong[position]
        log_caps[position] = log(caps[position])
        banner_hashes[position] = hash_banner(ad.banner_key)
        numbers[position] = number_of[ad.placement_key]
    yield
    return caps, RankedBids(
        first=lane.start,
        log_caps=log_caps,
        strengths=strong,
        placement_numbers=numbers,
        placement_keys=placement_keys,
        banner_hashes=banner_hashes,
        device_weights=(yield from strengths.collect_device_weights(banner_hashes)),
        worth_max=max((worths[position] for position in lane), default=0),
        orders={},
    )


def _build_chunk(worths: Sequence[int], caps: Sequence[float], positions: Sequence[int]) -> RankedChunk:
    return RankedChunk(
        top=caps[positions[0]],
        bottom=caps[positions[-1]],
        worth_min=min(worths[position] for position in positions),
        members=sum(1 << position for position in positions),
    )


# Most auctions are decided among so few; their bitmaps are short.
FIRST_BIDDERS_MAX: Final = 128
# The bids of a payer with fewer in a block are skipped one by one.
OWN_BIDS_MIN: Final = 8
ORDINARY_CLICKS: Final = 20  # Per thousand impressions.


class Bidder(Candidate, frozen=True, kw_only=True, gc=False):
    """A candidate that bids; `price` is what its own bid would cost."""

    placement_key: int
    payer: int  # The advertiser, or a campaign that has none.
    bid_type: BidType
    bid: Micros
    quality: Quality
    format: AdFormat
    floor: Micros

    @property
    def worth(self) -> int:
        """The part of its eCPM that is known before the request."""
        return compute_worth(self.bid, self.quality)

    @property
    def seniority(self) -> tuple[int, int, int]:
        """Breaks ties: the older campaign comes first."""
        return self.campaign_key, self.banner_key, self.placement_key


def lower_bid(bid: Micros, multiplier: float) -> Micros:
    """Return the bid times the multiplier: at most the bid, and at least a micro."""
    return Micros(max(1, min(bid, int(bid * multiplier))))


def lower_bidder(one: Bidder, multipliers: Mapping[int, float]) -> Bidder:
    """Return a bidder as it bids now."""
    multiplier = multipliers.get(one.campaign_key)
    return one if multiplier is None else msgspec.structs.replace(one, bid=lower_bid(one.bid, multiplier))


class Lane(NamedTuple):
    """The bids of one type in a block, the highest first, among equals the older campaign."""

    is_per_click: bool
    members: int
    start: int
    end: int


class BidBlock(Block, frozen=True, kw_only=True, eq=False):
    """Bidders, lane by lane."""

    lanes: tuple[Lane, ...]
    bidders: tuple[Bidder, ...]  # The candidates.
    worths: tuple[int, ...]  # Of each.
    payers: Sequence[int]  # Of each, side by side in memory: most bids need nothing else.
    floor_min: Micros  # No bid below takes part.
    floor_max: Micros
    own_bids: Mapping[int, int]  # By payer with many bids here, the mask of these bids.
    capped: int  # Bids with a frequency cap,
    capped_banner_keys: frozenset[int]  # and the keys of those banners.
    placement_keys: tuple[int, ...]
    rankings: dict[Strengths, CtrRanking]  # By strengths: those in use, and those about to be.


def has_bid(row: AssignmentRow) -> bool:
    return row.bid is not None and row.bid > 0


def build_bidder(candidate: Candidate, row: AssignmentRow, placement: PlacementRow) -> Bidder:
    assert row.bid is not None, "a bidder has a bid"
    ad_format = find_format(row)
    return Bidder(
        pair=candidate.pair,
        campaign_key=candidate.campaign_key,
        banner_key=candidate.banner_key,
        creative=candidate.creative,
        placing=candidate.placing,
        timing=candidate.timing,
        rules=candidate.rules,
        price=candidate.price,
        hold=candidate.hold,
        is_leased=candidate.is_leased,
        placement_key=placement.key,
        payer=find_payer(row.advertiser_key, row.campaign_key),
        bid_type=row.bid_type,
        bid=row.bid,
        quality=rate_quality(ad_format),
        format=ad_format,
        floor=placement.floor,
        frequency=candidate.frequency,
    )


def find_format(row: AssignmentRow) -> AdFormat:
    return AdFormat.SINGLE_IMAGE if row.video_url is None else AdFormat.VIDEO


def render_ad(row: AssignmentRow) -> bytes:
    """Encode what an answer says of its ad, as members of an object."""
    return encode_members(
        {
            "adFormat": find_format(row),
            "headline": row.headline or row.title,
            "primaryText": row.description,
            "callToAction": row.cta_label,
            "creativeUrl": row.video_url or row.primary_image_url,
            "destinationUrl": build_destination(row),
        }
    )


def build_bid_blocks(
    bidders: Sequence[Bidder],
    *,
    first_max: int = FIRST_BIDDERS_MAX,
    block_max: int = BLOCK_CANDIDATES_MAX,
    own_min: int = OWN_BIDS_MIN,
) -> Generator[None, None, list[Block]]:
    """Build blocks with pauses; the highest bids are in the first."""
    ordered = sorted(bidders, key=_compute_nominal_worth, reverse=True)
    blocks: list[Block] = []
    ends = [*range(first_max, len(ordered), block_max), len(ordered)] if ordered else []
    for start, end in pairwise([0, *ends]):
        yield
        in_lanes = sorted(ordered[start:end], key=_rank)
        blocks.append((yield from _build_block(tuple(in_lanes), own_min)))
    return blocks


def rank_blocks(blocks: Iterable[Block], strengths: Strengths) -> Generator[None, None, None]:
    """Rank the bids per click of blocks that are not ranked yet, with pauses."""
    for block in blocks:
        if not isinstance(block, BidBlock) or strengths in block.rankings:
            continue
        for is_per_click, _, start, end in block.lanes:
            if is_per_click:
                ranked = yield from build_ranking(
                    block.bidders,
                    block.worths,
                    range(start, end),
                    # Bids per impression come first.
                    per_impression=compute_ecpm(BidType.CPM, block.worths[0], Ctr(0)) if start else Micros(0),
                    strengths=strengths,
                )
                for retired in [one for one in block.rankings if one.is_retired]:
                    del block.rankings[retired]
                block.rankings[strengths] = ranked


def _build_block(bidders: tuple[Bidder, ...], own_min: int) -> Generator[None, None, BidBlock]:
    targeting = yield from compile_in_steps([one.rules for one in bidders])
    return BidBlock(
        candidates=bidders,
        targeting=targeting,
        everyone=(1 << len(bidders)) - 1,
        timed=tuple(number for number, one in enumerate(bidders) if one.timing is not None),
        lanes=_build_lanes(bidders),
        bidders=bidders,
        worths=tuple(one.worth for one in bidders),
        payers=array("q", [one.payer for one in bidders]),
        floor_min=min(one.floor for one in bidders),
        floor_max=max(one.floor for one in bidders),
        own_bids=_mask_own_bids(bidders, own_min),
        capped=sum(1 << number for number, one in enumerate(bidders) if one.frequency),
        capped_banner_keys=frozenset(one.banner_key for one in bidders if one.frequency),
        placement_keys=tuple(dict.fromkeys(one.placement_key for one in bidders)),
        rankings={},
    )


def _build_lanes(bidders: Sequence[Bidder]) -> tuple[Lane, ...]:
    per_impression = sum(one.bid_type is BidType.CPM for one in bidders)
    bounds = ((False, 0, per_impression), (True, per_impression, len(bidders)))
    return tuple(
        Lane(is_per_click, (1 << end) - (1 << start), start, end)
        for is_per_click, start, end in bounds
        if start < end
    )


def _mask_own_bids(bidders: Sequence[Bidder], own_min: int) -> dict[int, int]:
    often = {payer for payer, bids in Counter(one.payer for one in bidders).items() if bids >= own_min}
    own = dict.fromkeys(often, 0)
    for number, one in enumerate(bidders):
        if one.payer in often:
            own[one.payer] |= 1 << number
    return own


def _compute_nominal_worth(bidder: Bidder) -> int:
    """Compare bids of both types as if all had an ordinary CTR; a bad guess only costs time."""
    return bidder.worth * ORDINARY_CLICKS if bidder.bid_type is BidType.CPC else bidder.worth


def _rank(bidder: Bidder) -> tuple[bool, int, tuple[int, int, int]]:
    return bidder.bid_type is BidType.CPC, -bidder.worth, bidder.seniority
