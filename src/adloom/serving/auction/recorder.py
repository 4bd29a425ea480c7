"""Publishes auctions to the event log; no answer waits for it.

The log gets every served ad. Whole auctions go to a stream beside it: a sample, if the operator wants one, and
only so many bytes a second, since a market of thousands has kilobytes of bids.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from typing import Final

from adloom.core.ids import OpaqueId, RequestId, read_uuid
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.events.log.event import AuctionEntry, AuctionWin, Unsold, encode_event
from adloom.serving.auction import decide
from adloom.serving.auction.auctioneer import AuctionRequest
from adloom.serving.auction.bid_record import BidRecord
from adloom.serving.auction.request import describe_request
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import IndexedPlacement
from adloom.serving.index.rendered_banner import unpack_ids

BURST_SECONDS: Final = 0.25  # A burst of so many seconds' bytes delays other requests by some milliseconds.
# A crash loses no more than that. Of 1,000 auctions a second each takes 11 µs for it, and with 0.02 s 25 µs.
BATCH_SECONDS: Final = 0.05
ENTRY_BYTES: Final = 300  # An auction without its bids.
# The auction of a contextual slot. It has some hundred bytes, but to record one costs nearly as much as to hold it: a
# delivery process records 250 a second by default.
SLOT_BYTES: Final = 4_096
EXAMINED_BYTES: Final = 8  # What it costs to examine a candidate, in published bytes.

Publish = Callable[[bytes], object]
PublishPair = Callable[[bytes, bytes], object]
PublishAll = Callable[[Sequence[bytes]], object]


class AuctionRecorder:
    """Decides which auctions are recorded.

    `publish` takes an entry of the log, `publish_pair` an entry and its whole auction; neither waits.
    """

    def __init__(
        self,
        publish: Publish,
        publish_pair: PublishPair,
        chance: Chance,
        *,
        sample_rate: float,
        bytes_per_second: int,
    ) -> None:
        self.publish_served = publish  # For an auction that is not recorded.
        self._publish_pair = publish_pair
        self._chance = chance
        self._sample_rate = sample_rate
        self._bytes_per_second = bytes_per_second
        self._headroom = float(bytes_per_second * BURST_SECONDS)
        self._filled_at = self._empty_until = 0.0
        self._gap = self._draw_gap()  # So many auctions are not in the sample before the next one that is.
        # Plain counters, read by a collector.
        self.left_out = 0  # No headroom.
        self.sampled_out = 0

    def wants_next(self, at: float) -> bool:
        """Whether the next auction is in the sample and there is headroom for it.

        Headroom grows all the time: if it came once a second it would be used in one burst, and requests would wait.
        """
        if self._sample_rate < 1:
            if self._gap:
                self._gap -= 1
                self.sampled_out += 1
                return False
            self._gap = self._draw_gap()
        if self._filled_at <= at <= self._empty_until:
            self.left_out += 1
            return False
        if self._headroom <= 0 or at > self._filled_at + BURST_SECONDS:
            gained = max(0.0, at - self._filled_at) * self._bytes_per_second
            self._headroom = min(self._headroom + gained, self._bytes_per_second * BURST_SECONDS)
            self._filled_at = at
        return self.has_headroom()

    def leave_out(self, at: float, auctions: int) -> bool:
        """Leave out the next auctions if none of them is wanted, as is mostly so; else each is to be asked for."""
        if self._gap >= auctions:
            self._gap -= auctions
            self.sampled_out += auctions
            return True
        if self._sample_rate < 1 or not self._filled_at <= at <= self._empty_until:
            return False
        self.left_out += auctions
        return True

    def _draw_gap(self) -> int:
        """Draw how many are left out before one that each is with the same probability."""
        if self._sample_rate >= 1:
            return 0
        if self._sample_rate <= 0:
            return sys.maxsize
        return int(math.log1p(-self._chance.random()) / math.log1p(-self._sample_rate))

    def has_headroom(self) -> bool:
        if self._headroom > 0:
            return True
        self.left_out += 1
        return False

    def record(
        self,
        request: AuctionRequest,
        auction_id: OpaqueId,
        won_on: IndexedPlacement | None,
        served: bytes | None,
        *,
        scoring_version: int,
    ) -> None:
        """Publish an auction with all its bids; `served` is the entry of its offer, if there is a winner."""
        record = request.record
        assert record is not None, "its bids were recorded before the winner was reserved"
        self._use(ENTRY_BYTES + len(record.bids) + EXAMINED_BYTES * record.examined_count)
        auctioned = _build_auctioned(request, record, auction_id, won_on, scoring_version)
        self._publish(auctioned, served)

    def record_slot(self, auctioned: AuctionEntry, served: bytes | None) -> None:
        """Publish the auction of a contextual slot; `served` is the entry of its offer, where offers are published."""
        self._use(SLOT_BYTES)
        self._publish(auctioned, served)

    def _use(self, size: int) -> None:
        self._headroom -= size
        if self._headroom <= 0:
            self._empty_until = self._filled_at - self._headroom / self._bytes_per_second

    def _publish(self, auctioned: AuctionEntry, served: bytes | None) -> None:
        self._publish_pair(served or encode_event(Unsold(held_at=auctioned.held_at)), encode_event(auctioned))


class BatchingPublisher:
    """Collects entries for a moment and publishes them together: a batch costs nearly as much as one."""

    def __init__(self, publish_all: PublishAll, *, seconds: float = BATCH_SECONDS) -> None:
        self._publish_all = publish_all
        self._seconds = seconds
        self._entries: list[bytes] = []

    def publish(self, entry: bytes) -> None:
        if not self._entries:
            asyncio.get_running_loop().call_later(self._seconds, self.flush)
        self._entries.append(entry)

    def flush(self) -> None:
        """Publish what is collected now; also at shutdown, before the log closes."""
        entries, self._entries = self._entries, []
        if entries:
            self._publish_all(entries)


def _build_auctioned(
    request: AuctionRequest,
    record: BidRecord,
    auction_id: OpaqueId,
    won_on: IndexedPlacement | None,
    scoring_version: int,
) -> AuctionEntry:
    auction, query = request.auction, request.query
    win, market = auction.win, auction.market.placements
    named = None if query.placement is None else market[0]
    return AuctionEntry(
        auction_id=RequestId(read_uuid(auction_id.bytes)),
        user_id=read_uuid(query.user),
        placement_id=None if named is None else named.id,
        placement_type=market[0].type,
        held_at=request.now,
        context=describe_request(auction.input.contexts[0], query.visitor.last_purchase_days),
        scoring=(won_on or market[0]).scoring,
        scoring_version=scoring_version,
        floor=_find_floor(named) if win is None else win.bidder.floor,
        winner=None if win is None or won_on is None else _build_winner(win, won_on),
        bid_count=record.bid_count,
        bids=record.bids if win is None else record.mark_winner(),
        removed=record.removed,
        floors=record.floors,
    )


def _build_winner(win: decide.WinningBid, won_on: IndexedPlacement) -> AuctionWin:
    banner_id, campaign_id = unpack_ids(win.bidder.pair)
    return AuctionWin(
        banner_id=banner_id,
        campaign_id=campaign_id,
        placement_id=won_on.id,
        final_price=win.final,
        ecpm=win.ecpm,
        charge=win.charge,
    )


def _find_floor(placement: IndexedPlacement | None) -> Micros:
    """Return the floor of a placement that was asked for by slug, if it has bids."""
    blocks = () if placement is None else placement.blocks
    return next((block.floor_min for block in blocks if isinstance(block, BidBlock)), Micros(0))
