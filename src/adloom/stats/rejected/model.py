"""Events with a reason not to be billed: filter, reasons, and what may be shown."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.actor import Actor
from adloom.events.log.event import INVALIDATING_MARKS, Mark

# Behind these characters an address may carry anything, e-mail addresses and session keys included; also before an @.
_QUERY_AND_FRAGMENT: Final = re.compile(r"[?#].*", re.DOTALL)
_CREDENTIALS: Final = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/]*@", re.IGNORECASE)


class EventKind(StrEnum):
    """An impression or a click."""

    IMPRESSION = "impression"
    CLICK = "click"


class RejectedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A filter on events; both days are included."""

    first: date
    last: date
    reason: Mark | None = None
    kind: EventKind | None = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    # The account whose events may be seen, or None for all.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None


class RejectedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An invalid event. The visitor's id is not even read."""

    kind: EventKind
    correlation_id: str
    banner_id: UUID
    placement_id: UUID
    campaign_id: UUID | None
    marks: tuple[Mark, ...]
    occurred_at: datetime
    received_at: datetime
    request_id: UUID | None
    device_type: str | None
    country_code: str | None
    client_network: str | None
    page_url: str | None

    @property
    def reasons(self) -> tuple[Mark, ...]:
        """The marks that keep the event out of billing."""
        return tuple(mark for mark in self.marks if mark in INVALIDATING_MARKS)


class ReasonCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events have a reason; an event with two is counted in both."""

    reason: Mark
    impressions: int = 0
    clicks: int = 0


def all_reasons(found: Mapping[tuple[Mark, EventKind], int]) -> tuple[ReasonCount, ...]:
    """Return a line for every possible reason, with zeros."""
    return tuple(
        ReasonCount(
            reason=reason,
            impressions=found.get((reason, EventKind.IMPRESSION), 0),
            clicks=found.get((reason, EventKind.CLICK), 0),
        )
        for reason in INVALIDATING_MARKS
    )


def seen_by(actor: Actor, event: RejectedEvent) -> RejectedEvent:
    """Leave out the network that an event came from, unless the house itself asks."""
    return event if actor.sees_all else msgspec.structs.replace(event, client_network=None)


def bare_address(address: str | None) -> str | None:
    """Strip an address to the page that it names."""
    if address is None:
        return None
    return _CREDENTIALS.sub(r"\1//", _QUERY_AND_FRAGMENT.sub("", address))
