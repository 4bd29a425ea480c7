"""What happened, as the ledger keeps it: an auction was held, an offer was served, a browser reported an event.

The tag of a kind carries its version. Fields may be added with a default, and older entries
are read as before; any other change is a new tag beside the old one, because the ledger is
read again from its beginning.
"""

# pure

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, TypeAlias
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.log.auction_bids import BID_BYTES, BIDS_MAX, REASONS_MAX

OCCURRED_AGE_MAX: Final = timedelta(hours=24)
OCCURRED_AHEAD_MAX: Final = timedelta(minutes=5)
# What an auction's entry keeps of a request's context; whoever writes one cuts it to this.
CONTEXT_MAX: Final = 16
CONTEXT_KEY_MAX: Final = 50
CONTEXT_VALUE_MAX: Final = 200

# Millions of entries are kept in memory, so their field names are short.
_SHORT_NAMES: Final = {
    "correlation_id": "id",
    "banner_id": "b",
    "placement_id": "p",
    "campaign_id": "c",
    "occurred_at": "at",
    "received_at": "in",
    "request_id": "rq",
    "slot": "sl",
    "offered_at": "of",
    "lease": "l",
    "charge": "ch",
    "charged_by": "by",
    "session_id": "s",
    "user_id": "u",
    "device_type": "d",
    "country_code": "cc",
    "page_url": "pg",
    "client_network": "n",
    "marks": "m",
    "referrer_url": "rf",
    "destination_url": "to",
    "served_at": "at",
    "placement_type": "t",
    "final_price": "fp",
    "winning_ecpm": "we",
    "auction_id": "rq",
    "held_at": "at",
    "context": "x",
    "scoring": "sc",
    "scoring_version": "sv",
    "floor": "f",
    "winner": "w",
    "bid_count": "n",
    "bids": "bs",
    "removed": "rm",
    "floors": "fl",
}


class Mark(StrEnum):
    """Something about an event that whoever counts or bills it should know."""

    OCCURRED_AT_REPLACED = "occurred_at_replaced"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105 - a mark, no secret
    # What the request gave away.
    CRAWLER = "crawler"
    PREFETCH = "prefetch"
    DATA_CENTER = "data_center"
    ADDRESS_FLOOD = "address_flood"
    # What only the other events of the same offer tell; the projection adds them.
    CLICK_WITHOUT_IMPRESSION = "click_without_impression"
    SECOND_IMPRESSION = "second_impression"
    SECOND_CLICK = "second_click"


# Marks that an event may have and still be billed and learned from; all others are reasons to do neither.
HARMLESS_MARKS: Final = frozenset({Mark.OCCURRED_AT_REPLACED})
INVALIDATING_MARKS: Final = tuple(mark for mark in Mark if mark not in HARMLESS_MARKS)


class ChargedBy(StrEnum):
    """What an offer is paid for."""

    IMPRESSION = "impression"
    CLICK = "click"


class TrackedEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_SHORT_NAMES, tag_field="k"
):
    """What impressions and clicks have in common."""

    correlation_id: str
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId | None = None
    occurred_at: datetime
    received_at: datetime
    # The offer, from a genuine token only: its request, and which of the request's slots.
    request_id: RequestId | None = None
    slot: int | None = None
    # From the token too: the second of the offer, the lease it was given out of, what it costs and when that falls due.
    offered_at: int = 0
    lease: int = 0
    charge: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION
    session_id: str | None = None
    user_id: UUID | None = None
    device_type: str | None = None
    country_code: str | None = None
    page_url: str | None = None
    # Where it came from, the host part cut off; only where a mark is about that.
    client_network: str | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing that is known of the event keeps it out of billing and learning."""
        return HARMLESS_MARKS.issuperset(self.marks)

    @property
    def is_billable(self) -> bool:
        """Whether the event is valid and belongs to an offer of ours."""
        return self.request_id is not None and self.is_valid


class Impression(TrackedEvent, frozen=True, kw_only=True, tag="impression.v1"):
    """A banner was seen."""

    referrer_url: str | None = None


class Click(TrackedEvent, frozen=True, kw_only=True, tag="click.v1"):
    """A banner was clicked."""

    destination_url: str | None = None


class Served(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename=_SHORT_NAMES,
    tag_field="k",
    tag="served.v1",
):
    """An offer was made; nobody has seen it yet. Prices are per thousand impressions."""

    request_id: RequestId
    slot: int
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    placement_type: str
    served_at: datetime
    user_id: UUID | None = None
    final_price: Micros = Micros(0)
    winning_ecpm: Micros = Micros(0)


class AuctionWin(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Who won an auction, and at which price; the charge is per click or per thousand impressions, as was bid."""

    banner_id: BannerId
    campaign_id: CampaignId
    placement_id: PlacementId
    final_price: Micros
    ecpm: Micros
    charge: Micros


class RemovedCandidates(msgspec.Struct, frozen=True, array_like=True):
    """How many candidates one step has taken out of an auction before it was held."""

    reason: Annotated[str, msgspec.Meta(max_length=50)]
    count: int


class BidsUnderFloor(msgspec.Struct, frozen=True, array_like=True):
    """A floor, and who of an auction's bids was under it: their places, a byte each."""

    floor: Micros
    places: Annotated[bytes, msgspec.Meta(max_length=BIDS_MAX)]


class Unsold(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename=_SHORT_NAMES,
    tag_field="k",
    tag="unsold.v1",
):
    """Nobody won an auction; the auction lies beside the ledger, under the id of this entry."""

    held_at: datetime


class Auctioned(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename=_SHORT_NAMES,
    tag_field="k",
    tag="auction.v1",
):
    """An auction was held, and won or not; prices as in `Served`.

    It lies beside the ledger, under the id of the entry that tells what was served, or that nobody won. Who follows
    what is served takes one in the ledger itself, where they once were, for that too.
    """

    auction_id: RequestId  # The request that its offer is of; the offer's slot is 0.
    user_id: UUID
    # Where the request named one.
    placement_id: PlacementId | None = None
    placement_type: Annotated[str, msgspec.Meta(max_length=50)]
    held_at: datetime
    context: Annotated[
        dict[
            Annotated[str, msgspec.Meta(max_length=CONTEXT_KEY_MAX)],
            Annotated[str, msgspec.Meta(max_length=CONTEXT_VALUE_MAX)],
        ],
        msgspec.Meta(max_length=CONTEXT_MAX),
    ] = {}
    scoring: Annotated[str, msgspec.Meta(max_length=30)]
    scoring_version: int = 0
    floor: Micros = Micros(0)  # Of the winner's placement, or of the one that the request named.
    winner: AuctionWin | None = None
    # How many took part; `bids` has at most so many of them, and behind them of those who were removed.
    bid_count: int
    bids: Annotated[bytes, msgspec.Meta(max_length=BIDS_MAX * BID_BYTES)] = b""
    # All who were removed, whether or not `bids` has them; an outcome in there is the place of a reason here.
    removed: Annotated[tuple[RemovedCandidates, ...], msgspec.Meta(max_length=REASONS_MAX)] = ()
    # Of all in `bids` who were under the floor of their own placement; entries of older versions have none.
    floors: Annotated[tuple[BidsUnderFloor, ...], msgspec.Meta(max_length=BIDS_MAX)] = ()


Event: TypeAlias = Impression | Click
LogEvent: TypeAlias = Event | Served | Auctioned | Unsold

_encoder: Final = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder: Final = msgspec.msgpack.Decoder[LogEvent](LogEvent)


class UnreadableEntryError(Exception):
    """An entry of the ledger that is no event that we know."""


def encode_event(event: LogEvent) -> bytes:
    """Encode an event for the ledger."""
    return _encoder.encode(event)


def decode_event(entry: bytes) -> LogEvent:
    """Read an event from the ledger."""
    try:
        return _decoder.decode(entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableEntryError(str(error)) from error


def get_event_time(happening: LogEvent) -> datetime:
    """Tell when we heard of something, or did it."""
    match happening:
        case Impression() | Click():
            return happening.received_at
        case Served():
            return happening.served_at
        case Auctioned() | Unsold():
            return happening.held_at


def resolve_occurred_at(reported: datetime | None, *, now: datetime) -> tuple[datetime, tuple[Mark, ...]]:
    """Take the time that the browser reported, unless its clock is plainly wrong: then ours, marked."""
    if reported is None:
        return now, ()
    if now - reported > OCCURRED_AGE_MAX or reported - now > OCCURRED_AHEAD_MAX:
        return now, (Mark.OCCURRED_AT_REPLACED,)
    return reported.astimezone(UTC), ()
