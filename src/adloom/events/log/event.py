"""Entries of the event log, and their events: an auction, a served offer, a reported impression, click or conversion.

The tag of a kind has its version. Fields may be added with a default, and older entries are read as before. Any other
change is a new tag beside the old one, because the log is read again from its beginning.
"""

# pure

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, TypeAlias
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.log.auction_bids import BID_BYTES, BIDS_MAX, REASONS_MAX

BEGINNING: Final = "0-0"
Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]  # One without a zone cannot be compared.


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the event log; its id begins with the millisecond in which it was appended."""

    id: str
    data: bytes


def parse_entry_id(entry_id: str) -> tuple[int, int]:
    """Return a sort key: ids do not sort as texts."""
    millis, _, sequence = entry_id.partition("-")
    return int(millis), int(sequence or 0)


OCCURRED_AGE_MAX: Final = timedelta(hours=24)
OCCURRED_AHEAD_MAX: Final = timedelta(minutes=5)
# The context of a request in an auction's entry; the code that writes one cuts it to this.
CONTEXT_MAX: Final = 16
CONTEXT_KEY_MAX: Final = 50
CONTEXT_VALUE_MAX: Final = 200
PAGE_URL_MAX: Final = 2_048  # A normalised address.

# Millions of entries are kept in memory, so their field names are short.
SHORT_NAMES: Final = {
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
    "category": "ct",
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
    "name": "id",
    "value": "v",
    "currency": "cu",
    "by_key": "ky",
}


class Mark(StrEnum):
    """Something about an event that matters for counting or billing it."""

    OCCURRED_AT_REPLACED = "occurred_at_replaced"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105 - a mark, no secret
    # Without a token nobody knows whether there was an offer; without an assignment there was none.
    UNBOUND = "unbound"
    # It came with an API key, whose owner may gain by it: it moves no cap of another account.
    WITHOUT_OFFER = "without_offer"
    NOT_ASSIGNED = "not_assigned"
    # Found in the request.
    CRAWLER = "crawler"
    PREFETCH = "prefetch"
    DATA_CENTER = "data_center"
    ADDRESS_FLOOD = "address_flood"
    # Found in the request and the offer's token.
    DOUBTFUL_OFFER = "doubtful_offer"
    OTHER_SITE = "other_site"
    TOO_SOON = "too_soon"
    CAMPAIGN_FLOOD = "campaign_flood"
    # Found in the other events of the same offer; the projection adds them.
    CLICK_WITHOUT_IMPRESSION = "click_without_impression"
    SECOND_IMPRESSION = "second_impression"
    SECOND_CLICK = "second_click"
    # Found when the click was to be charged: it did not fit what was left.
    OVER_BUDGET = "over_budget"


# Events with these marks are valid: still learned from, and counted for caps. With any other they are not.
HARMLESS_MARKS: Final = frozenset({Mark.OCCURRED_AT_REPLACED, Mark.OVER_BUDGET})
INVALIDATING_MARKS: Final = tuple(mark for mark in Mark if mark not in HARMLESS_MARKS)
# Why an event is not billed.
UNBILLED_MARKS: Final = (*INVALIDATING_MARKS, Mark.OVER_BUDGET)


class ChargedBy(StrEnum):
    """What an offer is paid for."""

    IMPRESSION = "impression"
    CLICK = "click"


class LogStruct(msgspec.Struct, frozen=True, omit_defaults=True, rename=SHORT_NAMES, tag_field="k", gc=False):
    """What all events have in common: how they are encoded, and that the garbage collector need not search them for cycles."""


class TrackedEvent(LogStruct, frozen=True, kw_only=True):
    """What impressions and clicks have in common."""

    correlation_id: str
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId | None = None
    occurred_at: Moment
    received_at: Moment
    # The offer, only from a token that we signed: its request, and which of the request's slots.
    request_id: RequestId | None = None
    slot: int | None = None
    # From the token too: the second of the offer, the lease it was taken from, its price, and what is charged for.
    offered_at: int = 0
    lease: int = 0
    charge: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION
    # And the category that a contextual slot was sold under.
    category: str | None = None
    session_id: str | None = None
    user_id: UUID | None = None
    device_type: str | None = None
    country_code: str | None = None
    page_url: str | None = None
    # The sender's network; only where a mark is about that.
    client_network: str | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether no mark keeps the event out of billing and learning."""
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


class Conversion(LogStruct, frozen=True, kw_only=True, tag="conversion.v1"):
    """A shop reports what a visitor did after the click on an offer; the offer is from a token that we signed.

    It names no visitor. Its name is a digest of the sender's: that may be an order, or even a person.
    """

    name: bytes
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    request_id: RequestId
    slot: int
    offered_at: int  # In seconds, as everywhere.
    occurred_at: Moment
    received_at: Moment
    value: Micros = Micros(0)
    currency: str | None = None
    by_key: bool = False  # With an API key of the campaign's advertiser, or of an admin.
    marks: tuple[Mark, ...] = ()


class Served(LogStruct, frozen=True, kw_only=True, tag="served.v1"):
    """An offer was made, which may or may not be seen later. Prices are per thousand impressions."""

    request_id: RequestId
    slot: int
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    placement_type: str
    served_at: Moment
    user_id: UUID | None = None
    final_price: Micros = Micros(0)
    winning_ecpm: Micros = Micros(0)


class AuctionWin(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The winner of an auction, and its price. The charge is per click or per thousand impressions, as was bid."""

    banner_id: BannerId
    campaign_id: CampaignId
    placement_id: PlacementId
    final_price: Micros
    ecpm: Micros
    charge: Micros


class RemovedCandidates(msgspec.Struct, frozen=True, array_like=True):
    """How many candidates one step removed before the auction."""

    reason: Annotated[str, msgspec.Meta(max_length=50)]
    count: int


class BidsUnderFloor(msgspec.Struct, frozen=True, array_like=True):
    """A floor, and the places of the bids that were under it, a byte each."""

    floor: Micros
    places: Annotated[bytes, msgspec.Meta(max_length=BIDS_MAX)]


class Unsold(LogStruct, frozen=True, kw_only=True, tag="unsold.v1"):
    """An auction without an offer in the log: nobody won, or it is of a contextual slot, whose offers may not be there.

    Its record is in the side stream, under the id of this entry.
    """

    held_at: Moment


class AuctionEntry(LogStruct, frozen=True, kw_only=True, tag="auction.v1"):
    """The record of an auction, won or not; prices as in `Served`.

    It is in the side stream, under the id of the entry `Served` or `Unsold`. Older versions wrote it into the log
    itself; there it stands for what was served, too.
    """

    # The request of its offer, whose slot is 0; the auctions of a page's other slots have ids derived from it.
    auction_id: RequestId
    user_id: UUID
    # If the request named one.
    placement_id: PlacementId | None = None
    placement_type: Annotated[str, msgspec.Meta(max_length=50)]
    page_url: Annotated[str, msgspec.Meta(max_length=PAGE_URL_MAX)] | None = None  # Of a contextual slot.
    held_at: Moment
    context: Annotated[
        dict[
            Annotated[str, msgspec.Meta(max_length=CONTEXT_KEY_MAX)],
            Annotated[str, msgspec.Meta(max_length=CONTEXT_VALUE_MAX)],
        ],
        msgspec.Meta(max_length=CONTEXT_MAX),
    ] = {}
    scoring: Annotated[str, msgspec.Meta(max_length=30)]
    scoring_version: int = 0
    floor: Micros = Micros(0)  # Of the winner's placement, or of the requested one.
    winner: AuctionWin | None = None
    # How many took part. `bids` has at most so many of them, and then some that were removed.
    bid_count: int
    bids: Annotated[bytes, msgspec.Meta(max_length=BIDS_MAX * BID_BYTES)] = b""
    # All that were removed, in `bids` or not; an outcome there is the place of a reason here.
    removed: Annotated[tuple[RemovedCandidates, ...], msgspec.Meta(max_length=REASONS_MAX)] = ()
    # Of all in `bids` that were under the floor of their own placement.
    floors: Annotated[tuple[BidsUnderFloor, ...], msgspec.Meta(max_length=BIDS_MAX)] = ()


Event: TypeAlias = Impression | Click
EVENTS: Final = (Impression, Click)  # A union would be built again for every event.
LogEvent: TypeAlias = Event | Conversion | Served | AuctionEntry | Unsold

_encoder: Final = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder: Final = msgspec.msgpack.Decoder[LogEvent](LogEvent)


class UnreadableEntryError(Exception):
    """An entry of the log that is not an event that we know."""


def encode_event(event: LogEvent) -> bytes:
    return _encoder.encode(event)


def decode_event(entry: bytes) -> LogEvent:
    return decode_events((entry,))[0]


def decode_events(entries: Iterable[bytes]) -> list[LogEvent]:
    """Decode entries; UnreadableEntryError if one of them is no event that we know."""
    decode = _decoder.decode
    try:
        return [decode(entry) for entry in entries]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableEntryError(str(error)) from error


def get_event_time(happening: LogEvent) -> datetime:
    """Return when we received a report, or did something ourselves."""
    match happening:
        case Impression() | Click() | Conversion():
            return happening.received_at
        case Served():
            return happening.served_at
        case AuctionEntry() | Unsold():
            return happening.held_at


def resolve_occurred_at(
    reported: datetime | None, *, now: datetime, offered_at: datetime | None = None
) -> tuple[datetime, tuple[Mark, ...]]:
    """Return the time that the browser reported, unless its clock is plainly wrong: then ours, and a mark.

    What was offered cannot have been seen before.
    """
    if reported is None:
        return now, ()
    if (
        now - reported > OCCURRED_AGE_MAX
        or reported - now > OCCURRED_AHEAD_MAX
        or (offered_at is not None and offered_at - reported > OCCURRED_AHEAD_MAX)
    ):
        return now, (Mark.OCCURRED_AT_REPLACED,)
    return reported.astimezone(UTC), ()
