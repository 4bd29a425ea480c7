"""The auction of a contextual slot on record: one for each page and slot, in the form of all recorded auctions.

Scores are compared as prices: `eCPM = bid * (engagement / winner's engagement) ** (1 / bidWeight)`, so the winner's is
its bid, and the highest of the others is the second price. The factor is on record as the quality of a bid, and the
engagement that was drawn as its CTR.
"""

from typing import Final

from adloom.auction.bid import CTR_ONE, QUALITY_ONE
from adloom.core.ids import NO_USER, derive_auction_id
from adloom.core.money import Micros
from adloom.events.log.auction_bids import BIDS_MAX, LOST, REMOVED, WON, pack_bid
from adloom.events.log.event import AuctionEntry, AuctionWin, BidsUnderFloor, RemovedCandidates
from adloom.serving.auction.request import describe_request
from adloom.serving.contextual.decide import BELOW_FLOOR, BUDGET
from adloom.serving.contextual.prepare import (
    PreparedCandidate,
    PreparedShortlist,
    PreparedSlot,
    RemovedCandidate,
)
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.index.rendered_banner import unpack_ids

CONTEXTUAL: Final = "contextual"
QUALITY_MAX: Final = 2**32 - 1  # What the record has room for.
ECPM_MAX: Final = 2**62


class SlotRecord:
    """What is noted of a slot's auction while it is held."""

    __slots__ = ("price", "ranked", "removed", "unreserved")

    def __init__(self) -> None:
        self.removed: list[RemovedCandidate] = []
        self.ranked: list[tuple[PreparedCandidate, float]] = []  # With the engagement, the best first.
        self.unreserved = 0  # So many of the best could not be reserved.
        self.price: Micros | None = None  # Of the winner, if there is one.

    def remove(self, one: PreparedCandidate, reason: str, floor: Micros) -> None:
        under = floor if reason == BELOW_FLOOR else Micros(0)
        self.removed.append(RemovedCandidate(one.offer.pair, one.creative.bid, reason, under))


def build_auctioned(
    record: SlotRecord, prepared: PreparedSlot, visit: SlotVisit, *, number: int, scoring: str
) -> AuctionEntry:
    """Build the record of a slot's auction; `number` is the slot's in the request."""
    bids, removed, floors = _pack_bids(record, prepared.shortlist)
    rules = prepared.shortlist.rules
    winner, floor = None, rules.floor
    if record.price is not None:
        one = record.ranked[record.unreserved][0]
        floor = rules.find_floor(one.candidate)
        banner_id, campaign_id = unpack_ids(one.offer.pair)
        winner = AuctionWin(
            banner_id=banner_id,
            campaign_id=campaign_id,
            placement_id=prepared.slot.id,
            final_price=record.price,
            ecpm=one.creative.bid,
            charge=record.price,
        )
    return AuctionEntry(
        auction_id=derive_auction_id(visit.request_id, number),
        user_id=visit.user_id or NO_USER,
        placement_id=prepared.slot.id,
        placement_type=CONTEXTUAL,
        page_url=prepared.entry.url,
        held_at=visit.now,
        context=describe_request(visit.parse_context(prepared.slot.zone), None),
        scoring=scoring,
        scoring_version=0 if prepared.listed is None else prepared.listed.version,
        floor=floor,
        winner=winner,
        bid_count=len(record.ranked) - record.unreserved,
        bids=bids,
        removed=removed,
        floors=floors,
    )


def _pack_bids(
    record: SlotRecord, shortlist: PreparedShortlist
) -> tuple[bytes, tuple[RemovedCandidates, ...], tuple[BidsUnderFloor, ...]]:
    """Pack those that took part, the best first, then those that could not be reserved, then the others."""
    packed: list[bytes] = []
    reasons: dict[str, int] = {}
    under: dict[Micros, bytearray] = {}
    tried, took_part = record.ranked[: record.unreserved], record.ranked[record.unreserved :]
    best = record.ranked[min(record.unreserved, len(record.ranked) - 1)][1] if record.ranked else 0.0
    exponent = 1.0 / shortlist.rules.bid_weight
    outcome = WON
    for one, engagement in took_part:
        packed.append(_pack(one, engagement, _weigh(engagement, best, exponent), outcome))
        outcome = LOST
    for one, engagement in tried:
        outcome = _count_reason(reasons, BUDGET)
        packed.append(_pack(one, engagement, _weigh(engagement, best, exponent), outcome))
    for gone in (*record.removed, *shortlist.removed):
        if gone.reason == BELOW_FLOOR and len(packed) < BIDS_MAX:
            under.setdefault(gone.floor, bytearray()).append(len(packed))
        outcome = _count_reason(reasons, gone.reason)
        packed.append(pack_bid(gone.pair, gone.bid, QUALITY_ONE, False, 0, gone.bid, outcome))  # noqa: FBT003 - packed
    return (
        b"".join(packed[:BIDS_MAX]),
        tuple(RemovedCandidates(reason, count) for reason, count in reasons.items()),
        tuple(BidsUnderFloor(floor, bytes(places)) for floor, places in under.items()),
    )


def _pack(one: PreparedCandidate, engagement: float, factor: float, outcome: int) -> bytes:
    bid = one.creative.bid
    return pack_bid(
        one.offer.pair,
        bid,
        min(QUALITY_MAX, round(QUALITY_ONE * factor)),
        False,  # noqa: FBT003 - as it is packed
        min(CTR_ONE, round(CTR_ONE * engagement)),
        min(ECPM_MAX, round(bid * factor)),
        outcome,
    )


def _weigh(engagement: float, best: float, exponent: float) -> float:
    """Return by how much a bid counts more than the winner's would."""
    if best <= 0.0:
        return 1.0
    try:
        return min((engagement / best) ** exponent, float(QUALITY_MAX))
    except OverflowError:
        return float(QUALITY_MAX)


def _count_reason(reasons: dict[str, int], reason: str) -> int:
    """Count a removed candidate, and return its outcome: the place of its reason."""
    reasons[reason] = reasons.get(reason, 0) + 1
    return REMOVED + list(reasons).index(reason)
