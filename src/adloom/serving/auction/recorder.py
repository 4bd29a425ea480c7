"""Telling the ledger of auctions; no answer waits for that.

Whole auctions are recorded by chance, if the operator wants that, and only so many bytes a second: a
market of thousands has kilobytes of bids. They lie beside the ledger, which is told what was served in any case.
"""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, OpaqueId, RequestId
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.events.log.event import CONTEXT_VALUE_MAX, Auctioned, AuctionWin, Unsold, encode_event
from adloom.serving.auction import decide
from adloom.serving.auction.auctioneer import AuctionOutcome
from adloom.serving.auction.record.bid_record import BidRecord
from adloom.serving.auction.request import LAST_PURCHASE_DAYS, AuctionQuery, describe_context
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import IndexedPlacement
from adloom.targeting.context import Context

PAIRS_REMEMBERED_MAX: Final = 4_096
CONTEXTS_REMEMBERED_MAX: Final = 1_024
ROOM_SECONDS: Final = (
    0.25  # Of the bytes a second: what may come at once. Everybody else waits for it, some milliseconds.
)
ENTRY_BYTES: Final = 300  # Of an auction without its bids.
LOOKED_AT_BYTES: Final = 8  # What it costs to look at a candidate, in bytes that are told.

Tell = Callable[[bytes], object]
Record = Callable[[bytes, bytes], object]


class FinishedAuction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An auction that was held."""

    auction_id: OpaqueId
    query: AuctionQuery
    outcome: AuctionOutcome
    won_on: IndexedPlacement | None
    scoring_version: int
    now: datetime


class AuctionRecorder:
    """Decides which auctions are recorded; `tell` takes an entry of the ledger, `record` one and the auction that it is of.

    Neither waits.
    """

    def __init__(
        self, tell: Tell, record: Record, chance: Chance, *, sample_rate: float, bytes_per_second: int
    ) -> None:
        self._record = record
        self.served = tell  # Of an auction that is not recorded: the entry of its offer.
        self._chance = chance
        self._sample_rate = sample_rate
        self._bytes_per_second = bytes_per_second
        self._room = float(bytes_per_second * ROOM_SECONDS)
        self._filled_at = 0.0
        # Plain counters, read by a collector.
        self.recorded = 0
        self.left_out = 0  # Since there were too many.
        self.sampled_out = 0

    def wants_next(self, at: float) -> bool:
        """Tell whether an auction is to be recorded whole; in the end, if there is still room then.

        Room comes all the time: what came once a second would be used at once, and everybody else would wait for it.
        """
        if self._sample_rate < 1 and self._chance.random() >= self._sample_rate:
            self.sampled_out += 1
            return False
        if self._room <= 0 or at > self._filled_at + ROOM_SECONDS:
            gained = max(0.0, at - self._filled_at) * self._bytes_per_second
            self._room = min(self._room + gained, self._bytes_per_second * ROOM_SECONDS)
            self._filled_at = at
        return self.has_headroom()

    def has_headroom(self) -> bool:
        """Tell whether there is room for one more."""
        if self._room > 0:
            return True
        self.left_out += 1
        return False

    def record(self, held: FinishedAuction, note: BidRecord, served: bytes | None) -> None:
        """Tell of an auction with all its bids, and with the entry of its offer, if somebody has won."""
        self._room -= ENTRY_BYTES + len(note.bids) + LOOKED_AT_BYTES * note.examined_count
        self.recorded += 1
        self._record(served or encode_event(Unsold(held_at=held.now)), encode_event(_auctioned(held, note)))


def _auctioned(held: FinishedAuction, note: BidRecord) -> Auctioned:
    auction, query = held.outcome.auction, held.query
    win, market = auction.win, auction.stand.market
    named = None if query.placement is None else market[0]
    return Auctioned(
        auction_id=RequestId(UUID(bytes=held.auction_id.bytes)),
        user_id=UUID(query.user),
        placement_id=None if named is None else named.id,
        placement_type=market[0].type,
        held_at=held.now,
        context=_context_of(auction.asked.contexts[0], query.visitor.last_purchase_days),
        scoring=(held.won_on or market[0]).scoring,
        scoring_version=held.scoring_version,
        floor=_floor_of(named) if win is None else win.bidder.floor,
        winner=None if win is None or held.won_on is None else _winner(win, held.won_on),
        bid_count=note.bid_count,
        bids=note.bids if win is None else note.bids_with_winner(),
        removed=note.removed,
        floors=note.floors,
    )


def _winner(win: decide.WinningBid, won_on: IndexedPlacement) -> AuctionWin:
    banner_id, campaign_id = _ids_of(win.bidder.pair)
    return AuctionWin(
        banner_id=banner_id,
        campaign_id=campaign_id,
        placement_id=won_on.id,
        final_price=win.final,
        ecpm=win.ecpm,
        charge=win.charge,
    )


def _floor_of(placement: IndexedPlacement | None) -> Micros:
    """Tell the floor of a placement that was named, as far as anybody bids there."""
    blocks = () if placement is None else placement.blocks
    return next((block.floor_min for block in blocks if isinstance(block, BidBlock)), Micros(0))


@lru_cache(PAIRS_REMEMBERED_MAX)
def _ids_of(pair: bytes) -> tuple[BannerId, CampaignId]:
    return BannerId(UUID(bytes=pair[:16])), CampaignId(UUID(bytes=pair[16:]))


@lru_cache(CONTEXTS_REMEMBERED_MAX)
def _context_of(context: Context, last_purchase_days: int | None) -> dict[str, str]:
    """Write down what was known of the request, by the names of the API; nobody changes it."""
    known = describe_context(context) | {"hour": str(context.hour), "day": str(context.day)}
    if last_purchase_days is not None:
        known[LAST_PURCHASE_DAYS] = str(last_purchase_days)
    return {name: value[:CONTEXT_VALUE_MAX] for name, value in known.items()}
