"""Builds the row of a recorded auction, with its bids as the API shows them. Pure."""

# pure

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, BidType, Ctr
from adloom.auction.price import price_thousand_clicks
from adloom.core.ids import NO_USER
from adloom.core.money import MICROS_PER_UNIT, Micros, decimal_from_micros
from adloom.events.log.auction_bids import LOST, REMOVED, WON, RecordedBid, unpack_bids
from adloom.events.log.event import AuctionEntry, BidsUnderFloor, RemovedCandidates

NEVER: Final = datetime.min.replace(tzinfo=UTC)
NUL: Final = "\0"  # The one character that the database does not take.
BIDS_REMEMBERED_MAX: Final = 100  # Of auctions: 9 MB if each has 256 bids.


class BidView(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A bid as people read it: amounts with four places, per thousand impressions unless `bidType` says a click."""

    ad_id: UUID
    campaign_id: UUID
    bid: float
    bid_type: str
    bid_amount: float | None
    predicted_ctr: float
    quality_score: float
    ecpm: float
    outcome: str
    removed_by: str | None = None
    floor_cpm: float | None = None  # If the bid was under it.


class AuctionRow(NamedTuple):
    """A row, in the order in which its columns are written."""

    id: UUID
    user_id: UUID | None
    placement_type: str
    placement_id: UUID | None
    auction_time: datetime
    context: str | None
    scoring: str
    scoring_version: int
    floor_cpm: Decimal
    bid_count: int
    bids: str
    removed: str
    campaign_ids: str
    winning_ad_id: UUID | None
    winning_campaign_id: UUID | None
    final_price: Decimal | None
    winning_ecpm: Decimal | None
    charge: Decimal | None
    page_url: str | None


_encode: Final = msgspec.json.Encoder().encode
_OUTCOMES: Final = {WON: "won", LOST: "lost"}
_CPC: Final = (BidType.CPC, BidType.CPC.value)
_CPM: Final = (BidType.CPM, BidType.CPM.value)


def build_rows(
    auctions: Sequence[AuctionEntry], *, erased_at: Mapping[UUID, datetime], first_day: date
) -> list[AuctionRow]:
    """Build the rows of auctions whose day is still kept, without users who were erased since."""
    return [
        _build_row(auction, is_erased=auction.held_at <= erased_at.get(auction.user_id, NEVER))
        for auction in auctions
        if auction.held_at.astimezone(UTC).date() >= first_day
    ]


def build_bid_view(
    bid: RecordedBid, removed: Sequence[RemovedCandidates], floor: Micros | None = None
) -> BidView:
    """Format a bid; the number of a reason becomes its name."""
    kind, kind_name = _CPC if bid.is_per_click else _CPM
    amount = price_thousand_clicks(kind, bid.bid, Ctr(bid.ctr))
    reason = bid.outcome - REMOVED
    return BidView(
        ad_id=bid.banner_id,
        campaign_id=bid.campaign_id,
        bid=_round_amount(bid.bid),
        bid_type=kind_name,
        bid_amount=None if amount is None else _round_amount(amount),
        predicted_ctr=bid.ctr / CTR_ONE,
        quality_score=bid.quality / QUALITY_ONE,
        ecpm=_round_amount(bid.ecpm),
        outcome=_OUTCOMES.get(bid.outcome, "removed"),
        # An entry whose reasons are cut names none, rather than a wrong one.
        removed_by=removed[reason].reason if 0 <= reason < len(removed) else None,
        floor_cpm=None if floor is None else _round_amount(floor),
    )


def _build_row(auction: AuctionEntry, *, is_erased: bool) -> AuctionRow:
    bids, campaign_ids = _format_bids(auction.bids, auction.removed, auction.floors)
    winner = auction.winner
    placement_id = winner.placement_id if winner else auction.placement_id
    return AuctionRow(
        id=auction.auction_id,
        user_id=None if is_erased or auction.user_id == NO_USER else auction.user_id,
        placement_type=auction.placement_type.replace(NUL, ""),
        placement_id=placement_id,
        auction_time=auction.held_at.astimezone(UTC),
        context=None if is_erased else _format_context(auction.context),
        scoring=auction.scoring,
        scoring_version=auction.scoring_version,
        floor_cpm=decimal_from_micros(auction.floor),
        bid_count=auction.bid_count,
        bids=bids,
        removed=_encode({one.reason.replace(NUL, ""): one.count for one in auction.removed}).decode(),
        campaign_ids=campaign_ids,
        winning_ad_id=winner.banner_id if winner else None,
        winning_campaign_id=winner.campaign_id if winner else None,
        final_price=decimal_from_micros(winner.final_price) if winner else None,
        winning_ecpm=decimal_from_micros(winner.ecpm) if winner else None,
        charge=decimal_from_micros(winner.charge) if winner else None,
        page_url=auction.page_url,
    )


@lru_cache(BIDS_REMEMBERED_MAX)
def _format_bids(
    recorded: bytes, removed: tuple[RemovedCandidates, ...], floored: tuple[BidsUnderFloor, ...]
) -> tuple[str, str]:
    """Format bids and list the campaigns that took part; visitors of one kind share an auction until its bids change."""
    bids = list(unpack_bids(recorded))
    floors = {place: one.floor for one in floored for place in one.places}
    shown = [build_bid_view(bid, removed, floors.get(place)) for place, bid in enumerate(bids)]
    return _encode(shown).decode(), _format_array([bid.campaign_id for bid in bids if bid.outcome < REMOVED])


def _format_array(ids: Sequence[UUID]) -> str:
    """Format an array as PostgreSQL reads it, with other braces than JSON."""
    return f"{{{_encode(ids)[1:-1].decode()}}}"


def _format_context(context: Mapping[str, str]) -> str:
    return _encode(
        {name.replace(NUL, ""): value.replace(NUL, "") for name, value in context.items()}
    ).decode()


def _round_amount(amount: Micros) -> float:
    """Return an amount with four places, half to even as everywhere in the API; a float is exact enough."""
    return round(amount, -2) / MICROS_PER_UNIT
