"""What a batch of counted events adds to the results of contextual slots.

A click that came before its impression is not believed yet. It waits, and is counted when an impression of its offer
comes: so the order of arrival does not matter.
"""

# pure

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, PlacementId
from adloom.core.money import Micros
from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import EVENTS, HARMLESS_MARKS, Click, Event, Impression, Mark

Offer: TypeAlias = tuple[UUID, int]


class ResultKey(msgspec.Struct, frozen=True):
    """A creative in a slot, the category that the slot was sold under, and the minute of the event."""

    placement_id: PlacementId
    banner_id: BannerId
    category: str
    minute: datetime


class ResultCount(msgspec.Struct, frozen=True):
    """What is added to a key; the revenue is what its impressions cost."""

    impressions: int = 0
    clicks: int = 0
    revenue: Micros = Micros(0)

    def __add__(self, other: "ResultCount") -> "ResultCount":
        return ResultCount(
            self.impressions + other.impressions,
            self.clicks + other.clicks,
            Micros(self.revenue + other.revenue),
        )


CLICK: ResultCount = ResultCount(clicks=1)


class BatchCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch adds, clicks that begin to wait, and offers whose clicks need not wait any more."""

    added: Mapping[ResultKey, ResultCount]
    waiting: Mapping[Offer, ResultKey]
    seen: frozenset[Offer]


def is_contextual(event: object) -> bool:
    """Whether an event is of an offer in a contextual slot; only a token that we signed says so."""
    return isinstance(event, EVENTS) and event.category is not None


def count_batch(counted: Iterable[CountedEntry]) -> BatchCounts:
    """Count valid impressions and clicks of contextual slots; the tables have said which entries counted."""
    added: dict[ResultKey, ResultCount] = {}
    waiting: dict[Offer, ResultKey] = {}
    seen: set[Offer] = set()
    for one in counted:
        event = one.event
        if not isinstance(event, EVENTS) or event.category is None:
            continue
        if isinstance(event, Impression) and (offer := get_offer(event)) is not None:
            seen.add(offer)
        if one.is_valid:
            add(added, build_key(event), _count(event))
        elif _waits(one) and (offer := get_offer(event)) is not None:
            waiting[offer] = build_key(event)
    return BatchCounts(added=added, waiting=waiting, seen=frozenset(seen))


def build_key(event: Event) -> ResultKey:
    assert event.category is not None
    minute = event.occurred_at.replace(second=0, microsecond=0)
    return ResultKey(event.placement_id, event.banner_id, event.category, minute)


def get_offer(event: Event) -> Offer | None:
    if event.request_id is None or event.slot is None:
        return None
    return event.request_id, event.slot


def add(counts: dict[ResultKey, ResultCount], key: ResultKey, count: ResultCount) -> None:
    known = counts.get(key)
    counts[key] = count if known is None else known + count


def _count(event: Event) -> ResultCount:
    return ResultCount(impressions=1, revenue=event.charge) if isinstance(event, Impression) else CLICK


def _waits(one: CountedEntry) -> bool:
    """Whether a missing impression is all that keeps a click from being valid."""
    others = set(one.marks) - {Mark.CLICK_WITHOUT_IMPRESSION}
    return isinstance(one.event, Click) and len(others) < len(one.marks) and HARMLESS_MARKS.issuperset(others)
