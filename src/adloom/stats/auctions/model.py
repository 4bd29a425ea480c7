"""Recorded auctions: filters, statistics, and what an advertiser may see of one."""

# pure

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec
from pydantic import Field

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, BidType, Ctr, Quality
from adloom.auction.price import compute_least_ecpm, find_lowest_bid, round_to_band
from adloom.core.money import Micros

REMOVED: Final = "removed"
LOST: Final = "lost"
UNDER_FLOOR: Final = frozenset({"floor", "below_floor"})
MICROS: Final = 1_000_000
NOT_YOURS: Final[Any] = Field(description="Null where it is not the caller's own.")
STEP: Final = 100  # In micros: bids and recorded prices have four decimals.


class AuctionGrouping(StrEnum):
    """What auction statistics may be grouped by."""

    PLACEMENT_TYPE = "placementType"
    CAMPAIGN = "campaign"
    HOUR = "hour"


class AuctionOutcome(StrEnum):
    """How auctions ended, for anybody or for the campaigns that are asked about."""

    WON = "won"
    NOT_WON = "not_won"


class AuctionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A filter on auctions, from a moment on and before another.

    `campaign_ids` are those of the advertiser who asks, or the one that is asked about: only auctions that one of
    them took part in, whose wins are theirs.
    """

    user_id: UUID | None = None
    placement_type: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    campaign_ids: Sequence[UUID] | None = None
    outcome: AuctionOutcome | None = None
    # Auctions of a slot, of a page, or of one request's slots: few, which hourly sums know nothing of.
    placement: str | None = None  # By slug.
    page_url: str | None = None
    auction_ids: Sequence[UUID] | None = None


class AuctionBid(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A recorded bid; one of another account has an outcome and nothing more."""

    ad_id: UUID | None = None
    campaign_id: UUID | None = None
    bid: Annotated[float | None, Field(description="The campaign's own, by its `bidType`.")] = None
    bid_type: str | None = None
    bid_amount: Annotated[
        float | None, Field(description="Per thousand clicks; null also where no click is ever expected.")
    ] = None
    predicted_ctr: float | None = None
    quality_score: float | None = None
    ecpm: float | None = None
    outcome: str
    removed_by: Annotated[
        str | None, Field(description="The step that took it out, as `explain` names it.")
    ] = None
    floor_cpm: Annotated[
        float | None, Field(description="Of its own placement, where it was removed for being under that.")
    ] = None
    would_have_to_bid: Annotated[
        float | None,
        Field(description="An own bid that would have won; null where it won, or where none is known."),
    ] = None


class Auction(msgspec.Struct, frozen=True, kw_only=True):
    """An auction, without its bids."""

    id: UUID
    user_id: Annotated[
        UUID | None,
        Field(description="Null where the visitor was unknown or is erased, and for all but admins."),
    ]
    placement_type: str
    placement_id: Annotated[UUID | None, Field(description="Where it was won, or what the request named.")]
    page_url: Annotated[str | None, Field(description="Of a contextual slot: the page, normalised.")]
    auction_time: datetime
    scoring: str
    bid_count: int
    winning_ad_id: Annotated[UUID | None, NOT_YOURS]
    winning_campaign_id: Annotated[UUID | None, NOT_YOURS]
    final_price: Annotated[Decimal | None, NOT_YOURS]
    winning_ecpm: Annotated[Decimal | None, NOT_YOURS, Field(alias="winningeCPM")]
    charge: Annotated[
        Decimal | None, Field(description="Per click or per thousand impressions, as the winner bids.")
    ]
    names: Annotated[Mapping[str, str], Field(description="Of the ids that are shown, by id.")] = {}

    def list_ids(self) -> list[UUID | None]:
        """Return the ids of things that have names."""
        return [self.placement_id, self.winning_ad_id, self.winning_campaign_id]


class WholeAuction(Auction, frozen=True, kw_only=True):
    """An auction with everything that was recorded of it."""

    scoring_version: int
    floor_cpm: Annotated[
        Decimal, Field(description="Of the placement where it was won, or that was named; 0 for neither.")
    ]
    context: Mapping[str, Any] | None
    bids: Sequence[AuctionBid]
    removed: Annotated[
        Mapping[str, int], Field(description="How many were removed, by the step that did it.")
    ]

    def list_ids(self) -> list[UUID | None]:
        """Return the ids of things that have names, those of the bids too."""
        return [*super().list_ids(), *(one for bid in self.bids for one in (bid.ad_id, bid.campaign_id))]


A = TypeVar("A", bound=Auction)


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of auctions; sums, so that parts can be added up."""

    auctions: int = 0
    wins: int = 0
    ecpm_sum: Decimal = Decimal(0)  # Of the winners.
    bids: int = 0

    @property
    def win_rate(self) -> float:
        return round(100 * self.wins / self.auctions, 4) if self.auctions else 0.0

    @property
    def average_ecpm(self) -> float:
        return float(round(self.ecpm_sum / self.wins, 4)) if self.wins else 0.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of one group."""

    key: str | UUID | datetime
    statistics: Statistics


def with_bids_to_win(auction: WholeAuction, *, is_exact: bool = True) -> WholeAuction:
    """Add to each bid that lost to the winner or the floor the bid that would have won.

    Accounts get one that follows from the band of the winner's eCPM: the eCPM itself is not theirs to know.
    """
    bids = [
        msgspec.structs.replace(bid, would_have_to_bid=_compute_bid_to_win(bid, auction, is_exact=is_exact))
        if bid.outcome == LOST or bid.removed_by in UNDER_FLOOR
        else bid
        for bid in auction.bids
    ]
    return msgspec.structs.replace(auction, bids=bids)


def _compute_bid_to_win(bid: AuctionBid, auction: WholeAuction, *, is_exact: bool) -> float | None:
    needed = _find_ecpm_to_win(bid, auction, is_exact=is_exact)
    if needed is None or bid.bid_type is None or bid.predicted_ctr is None or bid.quality_score is None:
        return None
    lowest = find_lowest_bid(
        BidType(bid.bid_type),
        needed,
        ctr=Ctr(round(bid.predicted_ctr * CTR_ONE)),
        quality=Quality(round(bid.quality_score * QUALITY_ONE)),
    )
    return None if lowest is None else -(-lowest // STEP) * STEP / MICROS


def _find_ecpm_to_win(bid: AuctionBid, auction: WholeAuction, *, is_exact: bool) -> Micros | None:
    """Return an eCPM that would have won; None where none is known."""
    to_beat = Micros(0)
    if auction.winning_ecpm is not None:
        # Recorded values are rounded, and the tie-break by age is not recorded: one step more is always enough.
        to_beat = Micros(int(auction.winning_ecpm * MICROS) + STEP)
        to_beat = to_beat if is_exact else round_to_band(to_beat)
    elif auction.bid_count:
        # Bids took part, but none that was tried could be reserved: the record has no bid to beat.
        return None
    if bid.outcome == LOST:
        return to_beat  # Every bid that took part had reached its floor.
    floor = _find_floor(bid, auction)
    return None if floor is None else max(compute_least_ecpm(floor), to_beat)


def _find_floor(bid: AuctionBid, auction: WholeAuction) -> Micros | None:
    """Return the floor that a bid was under: its own placement's, where that was recorded."""
    if bid.floor_cpm is not None:
        return Micros(round(bid.floor_cpm * MICROS))
    # In an auction without a winner the only placement is the one that was asked for.
    is_named = auction.winning_ecpm is None and auction.placement_id is not None
    return Micros(int(auction.floor_cpm * MICROS)) if is_named else None


def with_names(auction: A, names: Mapping[UUID, str]) -> A:
    """Add the names of what is shown: call it after others' bids were hidden."""
    known = {str(one): names[one] for one in auction.list_ids() if one and one in names}
    return msgspec.structs.replace(auction, names=known)


def remove_user(auction: A) -> A:
    """Leave out for which visitor an auction was held."""
    return msgspec.structs.replace(auction, user_id=None)


def hide_others(auction: Auction, own: Set[UUID]) -> Auction:
    """Leave out the visitor, and the winner with its price unless the account itself won."""
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


def hide_other_bids(auction: WholeAuction, own: Set[UUID]) -> WholeAuction:
    """Show an account its own bids; of others only that they existed, and which one won."""
    bids = [
        bid if bid.campaign_id in own else AuctionBid(outcome=bid.outcome)
        for bid in auction.bids
        if bid.campaign_id in own or bid.outcome != REMOVED
    ]
    shown = hide_others(auction, own)
    assert isinstance(shown, WholeAuction)
    # The visitor's context and the removed bids are not shown to accounts.
    return msgspec.structs.replace(shown, bids=bids, removed={}, context=None)
