"""Noting who took part in an auction, and who did not and why, as the ledger keeps it. Pure.

Under load the same is asked again and again: for readers of the same kind, and nobody came or went since.
So what was noted is remembered, with all that it follows from.
"""

import struct
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.price import ecpm_of
from adloom.auction.score import Scorer
from adloom.delivery.auction import removal
from adloom.delivery.auction.book import Bidder
from adloom.delivery.auction.decide import NO_KEYS
from adloom.delivery.auction.field import Field, field_of
from adloom.delivery.auction.order import Order
from adloom.delivery.openings import Openings
from adloom.delivery.stock import Stock
from adloom.ledger.auction_bids import BID_BYTES, BIDS_MAX, LOST, REMOVED, WON, packed_bid
from adloom.ledger.event import Removed
from adloom.targeting.context import Context

NOTES_MAX: Final = 512  # Remembered: at most 8 MB.

_TERMS: Final = struct.Struct(">QIB")
_WON: Final = bytes((WON,))


class Note(msgspec.Struct, frozen=True, gc=False):
    """Who took part, the highest first; none of them is said to have won."""

    bids: bytes
    bid_count: int
    removed: tuple[Removed, ...]
    looked_at: int  # How many candidates were, to make it; none where it was remembered.

    def won(self) -> bytes:
        """Give the bids where the highest has won."""
        return self.bids[: BID_BYTES - 1] + _WON + self.bids[BID_BYTES:] if self.bid_count else self.bids


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request, as an auction sees it."""

    order: Order
    contexts: tuple[Context, ...]
    scorers: Sequence[Scorer]
    now: datetime
    seen_enough: Collection[int] = NO_KEYS
    without: Collection[int] = NO_KEYS


class _Remembered(msgspec.Struct, frozen=True):
    scorers: Sequence[Scorer]
    stocks: tuple[tuple[Stock, list[int], Openings], ...]
    note: Note

    def still_holds(self, scorers: Sequence[Scorer]) -> bool:
        for one, other in zip(self.scorers, scorers, strict=True):
            if one is not other:
                return False
        for stock, available, openings in self.stocks:
            if stock.available is not available or stock.openings is not openings:
                return False
        return True


class Notebook:
    """Notes auctions; `reason_of` tells why a campaign is excluded."""

    def __init__(self, reason_of: removal.ReasonOf) -> None:
        self._reason_of = reason_of
        self._remembered: dict[tuple[Order, tuple[Context, ...]], _Remembered] = {}
        self._of: object = None

    def note(self, asked: Asked, *, of: object) -> Note:
        """Note an auction before its offer is held; what is remembered is `of` one index."""
        if of is not self._of:
            self._of = of
            self._remembered.clear()
        if asked.seen_enough or asked.without:
            return self._noted(asked)
        key = asked.order, asked.contexts
        remembered = self._remembered.get(key)
        if remembered is not None and remembered.still_holds(asked.scorers):
            return remembered.note
        note = self._noted(asked)
        if len(self._remembered) >= NOTES_MAX:
            self._remembered.clear()
        stocks = dict.fromkeys(look.stock for look in asked.order.looks)
        self._remembered[key] = _Remembered(
            asked.scorers,
            tuple((stock, stock.available, stock.openings) for stock in stocks),
            msgspec.structs.replace(note, looked_at=0),
        )
        return note

    def _noted(self, asked: Asked) -> Note:
        field = field_of(
            asked.order,
            asked.contexts,
            asked.scorers,
            seen_enough=asked.seen_enough,
            without=asked.without,
            bids_max=BIDS_MAX,
        )
        bids = [packed_bid(_terms_of(one), ctr, -rank, LOST) for rank, one, ctr in field.bids]
        removed = _removed(field)
        candidates = sum(removed.values()) + field.bid_count
        if candidates <= BIDS_MAX:
            removed = self._listed(asked, field, bids)
        return Note(
            b"".join(bids),
            field.bid_count,
            tuple(Removed(reason, count) for reason, count in removed.items() if count),
            candidates,
        )

    def _listed(self, asked: Asked, field: Field, bids: list[bytes]) -> dict[str, int]:
        """List those too who took no part, since there is room for everybody."""
        took_part = {one.seniority for _, one, _ in field.bids}
        removed: dict[str, int] = {}
        for look in asked.order.looks:
            scorer, context = asked.scorers[look.scorer], asked.contexts[look.context]
            for position, one in enumerate(look.block.bidders):
                if not look.members >> position & 1 or one.seniority in took_part:
                    continue
                reason = removal.removal_of(
                    one,
                    context,
                    now=asked.now,
                    reason_of=self._reason_of,
                    seen_enough=asked.seen_enough,
                    without=asked.without,
                )
                removed[reason] = removed.get(reason, 0) + 1
                ctr = scorer.ctr(one)
                ecpm = ecpm_of(one.bid_type, one.worth, ctr)
                outcome = REMOVED + list(removed).index(reason)
                bids.append(packed_bid(_terms_of(one), ctr, ecpm, outcome))
        return removed


def _terms_of(bidder: Bidder) -> bytes:
    """Pack what of a bid is known before a request, as `ledger.auction_bids.packed_terms` does."""
    return bidder.pair + _TERMS.pack(bidder.bid, bidder.quality, bidder.bid_type is BidType.CPC)


def _removed(field: Field) -> dict[str, int]:
    return {
        removal.SCHEDULE: field.not_in_time,
        removal.LIMITS: field.excluded,
        removal.TARGETING: field.not_targeted,
        removal.FREQUENCY_CAP: field.seen_enough,
        removal.FLOOR: field.under_floor,
    }
