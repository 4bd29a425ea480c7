"""Noting who took part in an auction, and who did not and why, as the ledger keeps it. Pure."""

import struct
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.price import ecpm_of
from adloom.auction.score import Scorer
from adloom.core.money import Micros
from adloom.delivery.auction import removal
from adloom.delivery.auction.book import Bidder
from adloom.delivery.auction.decide import NO_KEYS
from adloom.delivery.auction.field import Field, field_of
from adloom.delivery.auction.order import Order
from adloom.ledger.auction_bids import BID_BYTES, BIDS_MAX, LOST, REMOVED, WON, packed_bid
from adloom.ledger.event import Floored, Removed
from adloom.targeting.context import Context

_TERMS: Final = struct.Struct(">QIB")
_WON: Final = bytes((WON,))


class Note(msgspec.Struct, frozen=True, gc=False):
    """Who took part, the highest first; none of them is said to have won."""

    bids: bytes
    bid_count: int
    removed: tuple[Removed, ...]
    looked_at: int  # How many candidates were, to make it; none where it is used again.
    floors: tuple[Floored, ...] = ()  # Of those in `bids` who were under theirs.

    def won(self) -> bytes:
        """Give the bids where the highest has won."""
        return self.bids[: BID_BYTES - 1] + _WON + self.bids[BID_BYTES:] if self.bid_count else self.bids


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request, as an auction sees it."""

    order: Order
    contexts: tuple[Context, ...]
    scorers: Sequence[Scorer]
    seen_enough: frozenset[int] = NO_KEYS
    without: frozenset[int] = NO_KEYS


class Notebook:
    """Notes auctions; `reason_of` tells why a campaign is excluded."""

    def __init__(self, reason_of: removal.ReasonOf) -> None:
        self._reason_of = reason_of

    def note(self, asked: Asked, now: datetime) -> Note:
        """Note an auction before its offer is held."""
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
        under: dict[Micros, bytearray] = {}
        if candidates <= BIDS_MAX:
            removed = self._listed(asked, field, bids, under, now)
        return Note(
            b"".join(bids),
            field.bid_count,
            tuple(Removed(reason, count) for reason, count in removed.items() if count),
            candidates,
            tuple(Floored(floor, bytes(places)) for floor, places in under.items()),
        )

    def _listed(
        self, asked: Asked, field: Field, bids: list[bytes], under: dict[Micros, bytearray], now: datetime
    ) -> dict[str, int]:
        """List those too who took no part, since there is room for everybody; who was under which floor apart."""
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
                    now=now,
                    reason_of=self._reason_of,
                    seen_enough=asked.seen_enough,
                    without=asked.without,
                )
                removed[reason] = removed.get(reason, 0) + 1
                ctr = scorer.ctr(one)
                ecpm = ecpm_of(one.bid_type, one.worth, ctr)
                outcome = REMOVED + list(removed).index(reason)
                if reason == removal.FLOOR:
                    under.setdefault(one.floor, bytearray()).append(len(bids))
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
