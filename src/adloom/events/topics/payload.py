"""The events of the topics, as other programs read them.

Each topic has a schema beside this file. Fields may be added; removing one or changing its meaning makes a new
topic, with the next version in its name.
"""

from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.core.ids import NO_USER
from adloom.core.money import decimal_from_micros
from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import Auctioned, AuctionWin, Click, Impression, Served, Unsold

IMPRESSION_TRACKED: Final = "ads.impression.tracked.v1"
CLICK_TRACKED: Final = "ads.click.tracked.v1"
AD_SERVED: Final = "ad.served.v1"
TOPICS: Final = (IMPRESSION_TRACKED, CLICK_TRACKED, AD_SERVED)


class TrackedPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A visitor's browser reported an impression or a click."""

    event_id: str
    correlation_id: str
    ad_id: UUID
    campaign_id: UUID | None
    placement_id: UUID
    user_id: UUID | None
    timestamp: datetime
    received_at: datetime
    request_id: UUID | None
    slot: int | None
    country_code: str | None
    device_type: str | None
    is_valid: bool
    is_billable: bool
    marks: tuple[str, ...]


class AdServedPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An ad was offered; it has not been seen yet."""

    event_id: str
    auction_id: UUID
    slot: int
    ad_id: UUID
    campaign_id: UUID
    placement_id: UUID
    placement_type: str
    user_id: UUID | None
    final_price: Decimal
    winning_ecpm: Decimal
    served_at: datetime


class TopicMessage(NamedTuple):
    """A payload and its topic."""

    topic: str
    payload: bytes


_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def build_message(counted: CountedEntry) -> TopicMessage | None:
    """Build the message of an entry that counted; an unsold auction has none."""
    match counted.event:
        case Impression():
            return TopicMessage(IMPRESSION_TRACKED, _encode(_build_tracked(counted, counted.event)))
        case Click():
            return TopicMessage(CLICK_TRACKED, _encode(_build_tracked(counted, counted.event)))
        case Served():
            return TopicMessage(AD_SERVED, _encode(_build_served(counted, counted.event)))
        case Auctioned(winner=winner):
            if winner is None:
                return None
            return TopicMessage(AD_SERVED, _encode(_build_won(counted, counted.event, winner)))
        case Unsold():
            return None


def _build_tracked(counted: CountedEntry, event: Impression | Click) -> TrackedPayload:
    return TrackedPayload(
        event_id=counted.entry_id,
        correlation_id=event.correlation_id,
        ad_id=event.banner_id,
        campaign_id=event.campaign_id,
        placement_id=event.placement_id,
        user_id=counted.user_id,
        timestamp=event.occurred_at,
        received_at=event.received_at,
        request_id=event.request_id,
        slot=event.slot,
        country_code=event.country_code,
        device_type=event.device_type,
        is_valid=counted.is_valid,
        is_billable=counted.is_valid and event.request_id is not None,
        marks=counted.marks,
    )


def _build_served(counted: CountedEntry, event: Served) -> AdServedPayload:
    return AdServedPayload(
        event_id=counted.entry_id,
        auction_id=event.request_id,
        slot=event.slot,
        ad_id=event.banner_id,
        campaign_id=event.campaign_id,
        placement_id=event.placement_id,
        placement_type=event.placement_type,
        user_id=_hide_nobody(counted.user_id),
        final_price=decimal_from_micros(event.final_price),
        winning_ecpm=decimal_from_micros(event.winning_ecpm),
        served_at=event.served_at,
    )


def _build_won(counted: CountedEntry, auction: Auctioned, winner: AuctionWin) -> AdServedPayload:
    return AdServedPayload(
        event_id=counted.entry_id,
        auction_id=auction.auction_id,
        slot=0,
        ad_id=winner.banner_id,
        campaign_id=winner.campaign_id,
        placement_id=winner.placement_id,
        placement_type=auction.placement_type,
        user_id=_hide_nobody(counted.user_id),
        final_price=decimal_from_micros(winner.final_price),
        winning_ecpm=decimal_from_micros(winner.ecpm),
        served_at=auction.held_at,
    )


def _hide_nobody(user_id: UUID | None) -> UUID | None:
    """Leave out the id that stands for no user, which an auction carries."""
    return None if user_id == NO_USER else user_id


def read_schema(topic: str) -> str:
    """Return the JSON Schema of a topic, as its file has it."""
    assert topic in TOPICS
    return (files(__package__ or "") / f"{topic}.json").read_text(encoding="utf-8")
