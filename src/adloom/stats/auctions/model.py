"""Recorded auctions as people look for them, and what an advertiser may know of one. Pure."""

# pure

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, BidType, Ctr, Quality
from adloom.auction.price import least_ecpm, lowest_bid
from adloom.core.errors import NotFoundError
from adloom.core.money import Micros

REMOVED: Final = "removed"
LOST: Final = "lost"
FLOOR: Final = "floor"
MICROS: Final = 1_000_000
STEP: Final = 100  # In micros: bids and what is recorded have four places.


class AuctionNotFoundError(NotFoundError):
    """No such auction, none any more, or none that one took part in."""

    code = "AUCTION_NOT_FOUND"


class AuctionGrouping(StrEnum):
    """By what statistics may be parted."""

    PLACEMENT_TYPE = "placementType"
    CAMPAIGN = "campaign"
    HOUR = "hour"


class AuctionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The auctions that someone asks for, from a moment on and before another.

    `campaign_ids` are those of an advertiser who asks: it sees what one of them took part in.
    """

    user_id: UUID | None = None
    placement_type: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    campaign_ids: Sequence[UUID] | None = None


class RecordedBid(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A bid, as it was recorded; one that is somebody else's has an outcome and nothing more."""

    ad_id: UUID | None = None
    campaign_id: UUID | None = None
    bid: float | None = None
    bid_type: str | None = None
    bid_amount: float | None = None
    predicted_ctr: float | None = None
    quality_score: float | None = None
    ecpm: float | None = None
    outcome: str
    removed_by: str | None = None
    floor_cpm: float | None = None
    would_have_to_bid: float | None = None


class Auction(msgspec.Struct, frozen=True, kw_only=True):
    """An auction, without its bids."""

    id: UUID
    user_id: UUID | None
    placement_type: str
    placement_id: UUID | None
    auction_time: datetime
    scoring: str
    bid_count: int
    winning_ad_id: UUID | None
    winning_campaign_id: UUID | None
    final_price: Decimal | None
    winning_ecpm: Decimal | None
    charge: Decimal | None


class WholeAuction(Auction, frozen=True, kw_only=True):
    """An auction, with all that was recorded of it."""

    scoring_version: int
    floor_cpm: Decimal
    context: Mapping[str, Any] | None
    bids: Sequence[RecordedBid]
    removed: Mapping[str, int]


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """What auctions come to; sums, so that those of parts can be added up."""

    auctions: int = 0
    wins: int = 0
    ecpm_sum: Decimal = Decimal(0)  # Of those who won.
    bids: int = 0

    @property
    def win_rate(self) -> float:
        """How many of a hundred auctions were won."""
        return round(100 * self.wins / self.auctions, 4) if self.auctions else 0.0

    @property
    def average_ecpm(self) -> float:
        """What those who won were worth."""
        return float(round(self.ecpm_sum / self.wins, 4)) if self.wins else 0.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one value of what they are parted by."""

    key: str | UUID | datetime
    statistics: Statistics


def with_bids_to_win(auction: WholeAuction) -> WholeAuction:
    """Tell of each bid that the winner, or the floor, was too high for what would have been enough."""
    bids = [
        msgspec.structs.replace(bid, would_have_to_bid=_bid_to_win(bid, auction))
        if bid.outcome == LOST or bid.removed_by == FLOOR
        else bid
        for bid in auction.bids
    ]
    return msgspec.structs.replace(auction, bids=bids)


def _bid_to_win(bid: RecordedBid, auction: WholeAuction) -> float | None:
    needed = _ecpm_to_win(bid, auction)
    if needed is None or bid.bid_type is None or bid.predicted_ctr is None or bid.quality_score is None:
        return None
    lowest = lowest_bid(
        BidType(bid.bid_type),
        needed,
        ctr=Ctr(round(bid.predicted_ctr * CTR_ONE)),
        quality=Quality(round(bid.quality_score * QUALITY_ONE)),
    )
    return None if lowest is None else -(-lowest // STEP) * STEP / MICROS


def _ecpm_to_win(bid: RecordedBid, auction: WholeAuction) -> Micros | None:
    """Tell an eCPM that would have won; None where nobody knows one."""
    to_beat = Micros(0)
    if auction.winning_ecpm is not None:
        # What is recorded is rounded, and who was older is not recorded: a step more is enough in any case.
        to_beat = Micros(int(auction.winning_ecpm * MICROS) + STEP)
    elif auction.bid_count:
        return None  # Some took part, and none of those who were tried could be held: they are not bids any more.
    if bid.outcome == LOST:
        return to_beat  # Whoever took part had reached their floor.
    floor = _floor_of(bid, auction)
    return None if floor is None else max(least_ecpm(floor), to_beat)


def _floor_of(bid: RecordedBid, auction: WholeAuction) -> Micros | None:
    """Tell the floor that a bid was under: its own placement's, where that was recorded."""
    if bid.floor_cpm is not None:
        return Micros(round(bid.floor_cpm * MICROS))
    # The only placement that takes part in an auction that nobody won is the one that was asked for.
    is_named = auction.winning_ecpm is None and auction.placement_id is not None
    return Micros(int(auction.floor_cpm * MICROS)) if is_named else None


def hidden(auction: Auction, own: Set[UUID]) -> Auction:
    """Leave out whom it was for, and who won at which price, unless one did so oneself."""
    is_own = auction.winning_campaign_id in own
    changes: dict[str, Any] = {"user_id": None}
    if not is_own:
        changes |= {
            "winning_ad_id": None,
            "winning_campaign_id": None,
            "final_price": None,
            "winning_ecpm": None,
            "charge": None,
        }
    return msgspec.structs.replace(auction, **changes)


def whole_hidden(auction: WholeAuction, own: Set[UUID]) -> WholeAuction:
    """Show of an auction's bids one's own; of others that there were some, and which of them won."""
    bids = [
        bid if bid.campaign_id in own else RecordedBid(outcome=bid.outcome)
        for bid in auction.bids
        if bid.campaign_id in own or bid.outcome != REMOVED
    ]
    shown = hidden(auction, own)
    assert isinstance(shown, WholeAuction)
    # What was known of the reader, and who else was kept out, is nobody's business here.
    return msgspec.structs.replace(shown, bids=bids, removed={}, context=None)
