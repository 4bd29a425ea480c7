"""What happened, as the ledger keeps it: an offer was served, a reader's browser reported an impression or a click.

The tag of a kind carries its version. Fields may be added with a default, and older entries
are read as before; any other change is a new tag beside the old one, because the ledger is
read again from its beginning.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros

OCCURRED_AGE_MAX: Final = timedelta(hours=24)
OCCURRED_AHEAD_MAX: Final = timedelta(minutes=5)

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
HARMLESS: Final = frozenset({Mark.OCCURRED_AT_REPLACED})
REASONS: Final = tuple(mark for mark in Mark if mark not in HARMLESS)


class ChargedBy(StrEnum):
    """What an offer is paid for."""

    IMPRESSION = "impression"
    CLICK = "click"


class Tracked(
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
        return HARMLESS.issuperset(self.marks)

    @property
    def is_billable(self) -> bool:
        """Whether the event is valid and belongs to an offer of ours."""
        return self.request_id is not None and self.is_valid


class Impression(Tracked, frozen=True, kw_only=True, tag="impression.v1"):
    """A banner was seen."""

    referrer_url: str | None = None


class Click(Tracked, frozen=True, kw_only=True, tag="click.v1"):
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


Event: TypeAlias = Impression | Click
Happening: TypeAlias = Event | Served

_encoder: Final = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder: Final = msgspec.msgpack.Decoder[Happening](Happening)


class UnreadableEntryError(Exception):
    """An entry of the ledger that is no event that we know."""


def encoded(event: Happening) -> bytes:
    """Encode an event for the ledger."""
    return _encoder.encode(event)


def decoded(entry: bytes) -> Happening:
    """Read an event from the ledger."""
    try:
        return _decoder.decode(entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableEntryError(str(error)) from error


def believed_time(reported: datetime | None, *, now: datetime) -> tuple[datetime, tuple[Mark, ...]]:
    """Take the time that the browser reported, unless its clock is plainly wrong: then ours, marked."""
    if reported is None:
        return now, ()
    if now - reported > OCCURRED_AGE_MAX or reported - now > OCCURRED_AHEAD_MAX:
        return now, (Mark.OCCURRED_AT_REPLACED,)
    return reported.astimezone(UTC), ()
