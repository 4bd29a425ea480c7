"""Events with a reason not to be billed, as people look for them."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.actor import Actor
from adloom.events.log.event import INVALIDATING_MARKS, Mark

# Behind these an address may carry anything, mail addresses and session keys included; and so before an @.
_QUERY_AND_FRAGMENT: Final = re.compile(r"[?#].*", re.DOTALL)
_CREDENTIALS: Final = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/]*@", re.IGNORECASE)


class EventKind(StrEnum):
    """What a reader's browser reported."""

    IMPRESSION = "impression"
    CLICK = "click"


class RejectedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The events that someone asks for; both days are included."""

    first: date
    last: date
    reason: Mark | None = None
    kind: EventKind | None = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    # Whose events may be seen: an advertiser's, a publisher's, or everyone's.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None


class RejectedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is not valid. Who it was of is nobody's business here, so it is not even read."""

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
    """How many events have a reason; one that has two is counted for both."""

    reason: Mark
    impressions: int = 0
    clicks: int = 0


def all_reasons(found: Mapping[tuple[Mark, EventKind], int]) -> tuple[ReasonCount, ...]:
    """Give a line for every reason there is, also where there are none."""
    return tuple(
        ReasonCount(
            reason=reason,
            impressions=found.get((reason, EventKind.IMPRESSION), 0),
            clicks=found.get((reason, EventKind.CLICK), 0),
        )
        for reason in INVALIDATING_MARKS
    )


def seen_by(actor: Actor, event: RejectedEvent) -> RejectedEvent:
    """Leave out the network that an event came from, unless somebody looks who runs the house."""
    return event if actor.sees_all else msgspec.structs.replace(event, client_network=None)


def bare_address(address: str | None) -> str | None:
    """Take from an address what says more than which page it was."""
    if address is None:
        return None
    return _CREDENTIALS.sub(r"\1//", _QUERY_AND_FRAGMENT.sub("", address))
