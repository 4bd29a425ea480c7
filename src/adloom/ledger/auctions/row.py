"""What becomes of an auction's entry: a row, with its bids written out as the API shows them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, BidType, Ctr
from adloom.auction.price import per_thousand_clicks
from adloom.core.ids import NOBODY
from adloom.core.money import Micros, decimal_from_micros
from adloom.ledger.auction_bids import LOST, REMOVED, WON, RecordedBid, unpacked
from adloom.ledger.event import Auctioned, Removed

NEVER: Final = datetime.min.replace(tzinfo=UTC)
NUL: Final = "\0"  # The one character that the database does not take.

_MICROS_A_STEP: Final = 100
_STEPS_A_UNIT: Final = 10_000


class BidShown(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
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
    floor_cpm: float | None = None  # Of who was under it.


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


_encode: Final = msgspec.json.Encoder().encode


def rows_of(
    auctions: Sequence[Auctioned], *, erased_at: Mapping[UUID, datetime], first_day: date
) -> list[AuctionRow]:
    """Make the rows of those that are of a day that is still kept; who was erased since is left out of them."""
    return [
        _row(auction, is_erased=auction.held_at <= erased_at.get(auction.user_id, NEVER))
        for auction in auctions
        if auction.held_at.astimezone(UTC).date() >= first_day
    ]


def shown_bid(bid: RecordedBid, removed: Sequence[Removed], floor: Micros | None = None) -> BidShown:
    """Write a bid out; what is recorded as a number of a reason gets its name."""
    kind = BidType.CPC if bid.is_per_click else BidType.CPM
    amount = per_thousand_clicks(kind, bid.bid, Ctr(bid.ctr))
    reason = bid.outcome - REMOVED
    return BidShown(
        ad_id=bid.banner_id,
        campaign_id=bid.campaign_id,
        bid=_shown(bid.bid),
        bid_type=kind.value,
        bid_amount=None if amount is None else _shown(amount),
        predicted_ctr=bid.ctr / CTR_ONE,
        quality_score=bid.quality / QUALITY_ONE,
        ecpm=_shown(bid.ecpm),
        outcome={WON: "won", LOST: "lost"}.get(bid.outcome, "removed"),
        # An entry whose reasons are cut names none, rather than another's.
        removed_by=removed[reason].reason if 0 <= reason < len(removed) else None,
        floor_cpm=None if floor is None else _shown(floor),
    )


def _row(auction: Auctioned, *, is_erased: bool) -> AuctionRow:
    bids = list(unpacked(auction.bids))
    floors = {place: one.floor for one in auction.floors for place in one.places}
    winner = auction.winner
    placement_id = winner.placement_id if winner else auction.placement_id
    return AuctionRow(
        id=auction.auction_id,
        user_id=None if is_erased or auction.user_id == NOBODY else auction.user_id,
        placement_type=auction.placement_type.replace(NUL, ""),
        placement_id=placement_id,
        auction_time=auction.held_at.astimezone(UTC),
        context=None if is_erased else _context(auction.context),
        scoring=auction.scoring,
        scoring_version=auction.scoring_version,
        floor_cpm=decimal_from_micros(auction.floor),
        bid_count=auction.bid_count,
        bids=_encode(
            [shown_bid(bid, auction.removed, floors.get(place)) for place, bid in enumerate(bids)]
        ).decode(),
        removed=_encode({one.reason.replace(NUL, ""): one.count for one in auction.removed}).decode(),
        campaign_ids=_array(bid.campaign_id for bid in bids if bid.outcome < REMOVED),
        winning_ad_id=winner.banner_id if winner else None,
        winning_campaign_id=winner.campaign_id if winner else None,
        final_price=decimal_from_micros(winner.final_price) if winner else None,
        winning_ecpm=decimal_from_micros(winner.ecpm) if winner else None,
        charge=decimal_from_micros(winner.charge) if winner else None,
    )


def _array(ids: Iterable[UUID]) -> str:
    """Write an array as the database reads one."""
    return f"{{{','.join(map(str, ids))}}}"


def _context(context: Mapping[str, str]) -> str:
    return _encode(
        {name.replace(NUL, ""): value.replace(NUL, "") for name, value in context.items()}
    ).decode()


def _shown(amount: Micros) -> float:
    """Write an amount with four places, half to even as all amounts of the API are; a float is exact enough for those."""
    steps, rest = divmod(amount, _MICROS_A_STEP)
    twice = 2 * rest
    steps += twice > _MICROS_A_STEP or (twice == _MICROS_A_STEP and steps % 2 == 1)
    return steps / _STEPS_A_UNIT
