"""The projection `topics`: publishes what counted for other programs, each event once, in the script that moves the cursor.

Each topic has a schema beside this file. Fields may be added; removing one or changing its meaning makes a new
topic, with the next version in its name.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.core.ids import NO_USER
from adloom.core.money import decimal_from_micros
from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.followers.fence import Argument, ExpectedValue, FollowerCommitter, read_cursor_at
from adloom.events.log.event import Auctioned, AuctionWin, Click, Conversion, Impression, Served, Unsold
from adloom.events.log.stream import MemoryUse, pack_entries
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.runtime.valkey import Valkey, unavailable_when_away

IMPRESSION_TRACKED: Final = "ads.impression.tracked.v1"
CLICK_TRACKED: Final = "ads.click.tracked.v1"
CONVERSION_TRACKED: Final = "ads.conversion.tracked.v1"
AD_SERVED: Final = "ad.served.v1"
TOPICS: Final = (IMPRESSION_TRACKED, CLICK_TRACKED, CONVERSION_TRACKED, AD_SERVED)


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


class ConversionPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A shop reported what a visitor did after a click; neither names the visitor."""

    event_id: str
    conversion_id: str
    ad_id: UUID
    campaign_id: UUID
    placement_id: UUID
    timestamp: datetime
    received_at: datetime
    request_id: UUID
    slot: int
    value: Decimal
    currency: str | None
    is_counted: bool
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
        case Auctioned(winner=AuctionWin() as winner):
            return TopicMessage(AD_SERVED, _encode(_build_served(counted, _as_served(counted.event, winner))))
        case Conversion():
            return TopicMessage(CONVERSION_TRACKED, _encode(_build_conversion(counted, counted.event)))
        case Auctioned() | Unsold():
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


def _build_conversion(counted: CountedEntry, event: Conversion) -> ConversionPayload:
    return ConversionPayload(
        event_id=counted.entry_id,
        conversion_id=event.name.hex(),
        ad_id=event.banner_id,
        campaign_id=event.campaign_id,
        placement_id=event.placement_id,
        timestamp=event.occurred_at,
        received_at=event.received_at,
        request_id=event.request_id,
        slot=event.slot,
        value=decimal_from_micros(event.value),
        currency=event.currency,
        is_counted=counted.is_valid,
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
        # An auction carries an id that stands for no user.
        user_id=None if counted.user_id == NO_USER else counted.user_id,
        final_price=decimal_from_micros(event.final_price),
        winning_ecpm=decimal_from_micros(event.winning_ecpm),
        served_at=event.served_at,
    )


def _as_served(auction: Auctioned, winner: AuctionWin) -> Served:
    """Return what an auction in the log itself, of an older version, stands for."""
    return Served(
        request_id=auction.auction_id,
        slot=0,
        banner_id=winner.banner_id,
        placement_id=winner.placement_id,
        campaign_id=winner.campaign_id,
        placement_type=auction.placement_type,
        served_at=auction.held_at,
        final_price=winner.final_price,
        winning_ecpm=winner.ecpm,
    )


def read_schema(topic: str) -> str:
    assert topic in TOPICS
    return (files(__package__ or "") / f"{topic}.json").read_text(encoding="utf-8")


TOPICS_PROJECTION: Final = "topics"
CURSOR: Final = "adloom:ledger:cursor:topics"
BATCH_MAX: Final = 500  # The server does nothing else while it takes a batch: this is about a millisecond.
TOPIC_PERCENT_MAX: Final = 5  # Of Valkey's memory, for each topic; beyond, a topic is halved.
ENTRIES_MAX: Final = 1_000_000  # Of each topic, about; half a gigabyte.

# A script that fails halfway keeps what it has done, so everything that can fail is checked first.
PUBLISH: Final = """
local entries_max, at = ARGV[first], first + 1
while at < #ARGV do
    local kind = redis.call('TYPE', ARGV[at]).ok
    if kind ~= 'stream' and kind ~= 'none' then
        return redis.error_reply('ADLOOM ' .. ARGV[at] .. ' is taken by a ' .. kind)
    end
    at = at + 2
end
at = first + 1
while at < #ARGV do
    local topic, payloads, place, payload = ARGV[at], ARGV[at + 1], 1, nil
    while place <= #payloads do
        payload, place = struct.unpack('>I4c0', payloads, place)
        redis.call('XADD', topic, '*', 'event', payload)
    end
    redis.call('XTRIM', topic, 'MAXLEN', '~', entries_max)
    at = at + 2
end
"""


class TopicsProjection:
    """The projection `topics`."""

    def __init__(self, valkey: Valkey, lookup: CountedLookup, *, entries_max: int = ENTRIES_MAX) -> None:
        self._valkey = valkey
        self._commit = FollowerCommitter(valkey, lookup, PUBLISH).commit
        self._entries_max = entries_max

    async def read_cursor(self) -> str:
        return await read_cursor_at(self._valkey, CURSOR)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Publish what counted and move the cursor, in one script; if nothing is kept, only move it."""
        wanted = records if self._entries_max else ()
        counted = await self._commit(
            wanted, self._arguments, expected=[ExpectedValue(CURSOR, after)], cursor=cursor
        )
        return BatchResult(counted=len(counted), repeated=len(wanted) - len(counted))

    def _arguments(self, counted: Sequence[CountedEntry]) -> list[Argument]:
        payloads: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        impressions = payloads[IMPRESSION_TRACKED]
        for one in counted:
            if isinstance(event := one.event, Impression):  # As nearly all: without a message for each.
                impressions.append(_encode(_build_tracked(one, event)))
            elif message := build_message(one):
                payloads[message.topic].append(message.payload)
        arguments: list[Argument] = [self._entries_max]
        for topic, several in payloads.items():
            if several:
                arguments += (topic, pack_entries(several))
        return arguments


class TopicTrimmer:
    """Trims topics that take too much of Valkey's memory, besides their bound in entries."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def trim(self, memory: MemoryUse) -> None:
        bytes_max = memory.limit_bytes * TOPIC_PERCENT_MAX // 100
        if bytes_max == 0:
            return
        for topic in TOPICS:
            with unavailable_when_away():
                used = await self._valkey.memory_usage(topic) or 0
                if used > bytes_max:
                    entries = await self._valkey.xlen(topic)
                    await self._valkey.xtrim(
                        topic, maxlen=entries * bytes_max // (2 * used), approximate=True
                    )
