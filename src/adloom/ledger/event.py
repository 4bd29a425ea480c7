"""What a reader's browser reported: an impression or a click, as the ledger keeps it.

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
    "session_id": "s",
    "user_id": "u",
    "device_type": "d",
    "country_code": "cc",
    "page_url": "pg",
    "marks": "m",
    "referrer_url": "rf",
    "destination_url": "to",
}


class Mark(StrEnum):
    """Something about an event that whoever counts or bills it should know."""

    OCCURRED_AT_REPLACED = "occurred_at_replaced"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105 - a mark, no secret


# Marks that keep an event of a genuine offer out of billing.
_UNBILLABLE: Final = frozenset({Mark.TOKEN_EXPIRED})


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
    # The request of the offer, from a genuine token only.
    request_id: RequestId | None = None
    session_id: str | None = None
    user_id: UUID | None = None
    device_type: str | None = None
    country_code: str | None = None
    page_url: str | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def is_billable(self) -> bool:
        """Whether the event belongs to an offer of ours, in time."""
        return self.request_id is not None and _UNBILLABLE.isdisjoint(self.marks)


class Impression(Tracked, frozen=True, kw_only=True, tag="impression.v1"):
    """A banner was seen."""

    referrer_url: str | None = None


class Click(Tracked, frozen=True, kw_only=True, tag="click.v1"):
    """A banner was clicked."""

    destination_url: str | None = None


Event: TypeAlias = Impression | Click

_encoder: Final = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder: Final = msgspec.msgpack.Decoder[Event](Event)


class UnreadableEntryError(Exception):
    """An entry of the ledger that is no event that we know."""


def encoded(event: Event) -> bytes:
    """Encode an event for the ledger."""
    return _encoder.encode(event)


def decoded(entry: bytes) -> Event:
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
