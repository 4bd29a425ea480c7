"""The projection `topics`: publishes what counted for other programs, each event once, in the transaction that moves the cursor.

A topic is published while its stream exists, which its first consumer group makes: a stream that nobody reads would
take Valkey as much CPU as the event log, and half a gigabyte.

Each topic has a schema beside this file. Fields may be added; removing one or changing its meaning makes a new
topic, with the next version in its name.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from redis.exceptions import ResponseError

from adloom.core.errors import UnavailableError
from adloom.core.ids import NO_USER
from adloom.core.money import decimal_from_micros
from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.followers.fence import ERASURES, TRIES_MAX, read_cursor_at, split_batch
from adloom.events.log.event import (
    AuctionEntry,
    AuctionWin,
    Click,
    Conversion,
    Impression,
    LogEvent,
    Served,
    Unsold,
)
from adloom.events.log.stream import EXEC, MULTI, MemoryUse, pack_adds
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.runtime.failover.dedicated_connection import (
    ExecutePacked,
    borrow_connection,
    pack_command,
    raise_first_error,
)
from adloom.runtime.valkey import Valkey, raise_if_away

IMPRESSION_TRACKED: Final = "ads.impression.tracked.v1"
CLICK_TRACKED: Final = "ads.click.tracked.v1"
CONVERSION_TRACKED: Final = "ads.conversion.tracked.v1"
AD_SERVED: Final = "ad.served.v1"
TOPICS: Final = (IMPRESSION_TRACKED, CLICK_TRACKED, CONVERSION_TRACKED, AD_SERVED)
_TOPICS_BY_KIND: Final[Mapping[type[LogEvent], str]] = {
    Impression: IMPRESSION_TRACKED,
    Click: CLICK_TRACKED,
    Conversion: CONVERSION_TRACKED,
    Served: AD_SERVED,
    AuctionEntry: AD_SERVED,
}


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
        case AuctionEntry(winner=AuctionWin() as winner):
            return TopicMessage(
                AD_SERVED, _encode(_build_served(counted, _build_served_entry(counted.event, winner)))
            )
        case Conversion():
            return TopicMessage(CONVERSION_TRACKED, _encode(_build_conversion(counted, counted.event)))
        case AuctionEntry() | Unsold():
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


def _build_served_entry(auction: AuctionEntry, winner: AuctionWin) -> Served:
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
PART_MAX: Final = 500  # The server does nothing else while it takes a part: this is about a millisecond.
TOPIC_PERCENT_MAX: Final = 5  # Of Valkey's memory, for each topic; beyond, a topic is halved.
ENTRIES_MAX: Final = 1_000_000  # Of each topic, about; half a gigabyte.
FIELD: Final = b"event"

# Nothing is published if the cursor moves, or a user is erased, after this.
_CHECK: Final = b"".join(
    (
        pack_command("WATCH", CURSOR, ERASURES),
        pack_command("GET", CURSOR),
        *(pack_command("TYPE", topic) for topic in TOPICS),
    )
)
_STREAM: Final = b"stream"
_NO_KEY: Final = b"none"


class TopicsProjection:
    """The projection `topics`."""

    def __init__(self, valkey: Valkey, lookup: CountedLookup, *, entries_max: int = ENTRIES_MAX) -> None:
        self._valkey = valkey
        self._lookup = lookup
        self._entries_max = entries_max
        self._is_published = True  # Whether there was a topic at the last commit.

    async def read_cursor(self) -> str:
        return await read_cursor_at(self._valkey, CURSOR)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Publish what counted and move the cursor, in one transaction a part; if nothing is kept, only move it."""
        part_max = PART_MAX if self._is_published else len(records) + 1
        result = BatchResult()
        for part, end in split_batch(records, after=after, cursor=cursor, part_max=part_max):
            result += await self._commit_part(part, after=after, cursor=end)
            after = end
        return result

    async def _commit_part(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        for _ in range(TRIES_MAX):
            with raise_if_away("Valkey does not take the batch"):
                async with borrow_connection(self._valkey) as execute_packed:
                    result = await self._publish(execute_packed, records, after=after, cursor=cursor)
            if result is not None:
                return result
        raise UnavailableError("Users are erased, or topics replaced, faster than a batch can be committed.")

    async def _publish(
        self, execute_packed: ExecutePacked, records: Sequence[DecodedEntry], *, after: str, cursor: str
    ) -> BatchResult | None:
        """Return what counted of the topics that there are; None if a topic was replaced or a user erased meanwhile."""
        _, found, *kinds = await execute_packed(_CHECK, 2 + len(TOPICS))
        if found != after.encode():
            raise CursorMovedError
        published = self._find_published(kinds)
        self._is_published = bool(published)
        wanted = [one for one in records if _TOPICS_BY_KIND.get(type(one.event)) in published]
        counted = await self._lookup.find_counted(wanted) if wanted else []
        payloads = {topic: several for topic, several in _build_payloads(counted).items() if several}
        commands = [
            MULTI,
            *(pack_adds(topic, FIELD, several, "NOMKSTREAM") for topic, several in payloads.items()),
            *(pack_command("XTRIM", topic, "MAXLEN", "~", self._entries_max) for topic in payloads),
            pack_command("SET", CURSOR, cursor),
            EXEC,
        ]
        answers = await execute_packed(
            b"".join(commands), sum(map(len, payloads.values())) + len(payloads) + 3
        )
        if answers[-1] is None:
            return None
        try:
            raise_first_error(answers[-1])
        except ResponseError:
            await self._take_back(execute_packed, payloads, answers[-1], after=after, cursor=cursor)
            return None
        return BatchResult(counted=len(counted), repeated=len(wanted) - len(counted))

    async def _take_back(
        self,
        execute_packed: ExecutePacked,
        payloads: Mapping[str, Sequence[bytes]],
        added: Sequence[object],
        *,
        after: str,
        cursor: str,
    ) -> None:
        """Undo a batch of which a topic took nothing, because its key was replaced after the check."""
        _, found = await execute_packed(pack_command("WATCH", CURSOR) + pack_command("GET", CURSOR), 2)
        if found != cursor.encode():
            raise CursorMovedError
        topics = [topic for topic, several in payloads.items() for _ in several]
        entries = [(topic, one) for topic, one in zip(topics, added, strict=False) if isinstance(one, bytes)]
        commands = [
            MULTI,
            *(pack_command("XDEL", topic, entry) for topic, entry in entries),
            pack_command("SET", CURSOR, after),
            EXEC,
        ]
        await execute_packed(b"".join(commands), len(entries) + 3)

    def _find_published(self, kinds: Sequence[bytes]) -> set[str]:
        """Return the topics whose streams there are."""
        for topic, kind in zip(TOPICS, kinds, strict=True):
            # In the transaction it would be left out, and the others would be published.
            if kind not in (_STREAM, _NO_KEY):
                raise UnavailableError(f"The topic {topic} is taken by a {kind.decode()}.")
        if not self._entries_max:
            return set()
        return {topic for topic, kind in zip(TOPICS, kinds, strict=True) if kind == _STREAM}


def _build_payloads(counted: Sequence[CountedEntry]) -> dict[str, list[bytes]]:
    payloads: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
    impressions = payloads[IMPRESSION_TRACKED]
    for one in counted:
        if isinstance(event := one.event, Impression):  # As nearly all: without a message for each.
            impressions.append(_encode(_build_tracked(one, event)))
        elif message := build_message(one):
            payloads[message.topic].append(message.payload)
    return payloads


class TopicTrimmer:
    """Trims topics that take too much of Valkey's memory, besides their bound in entries."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def trim(self, memory: MemoryUse) -> None:
        bytes_max = memory.limit_bytes * TOPIC_PERCENT_MAX // 100
        if bytes_max == 0 or memory.used_bytes <= bytes_max:  # All topics together have no more then.
            return
        for topic in TOPICS:
            with raise_if_away():
                used = await self._valkey.memory_usage(topic) or 0
                if used > bytes_max:
                    left = await self._valkey.xlen(topic) * bytes_max // (2 * used)
                    # The server removes some at a time, so that it does not stand still.
                    while await self._valkey.xtrim(topic, maxlen=left, approximate=True):
                        pass
