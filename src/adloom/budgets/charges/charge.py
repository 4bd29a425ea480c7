"""Which events cost money, and what they confirm."""

# pure

from typing import Final

from adloom.budgets.campaign.seen import Offer
from adloom.budgets.messages import ChargeKind, Confirm
from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import Click, Event, Impression, LogEvent

EVENTS: Final = (Impression, Click)
# Looked up once: looking up a member of an enumeration costs more than comparing it.
_IMPRESSION: Final = ChargeKind.IMPRESSION
_CLICK: Final = ChargeKind.CLICK


def may_cost(happening: LogEvent) -> bool:
    """Whether an event belongs to an offer with a price, whatever confirms it."""
    return (
        isinstance(happening, EVENTS)
        and happening.charge > 0
        and happening.request_id is not None
        and happening.slot is not None
        and happening.campaign_id is not None
    )


def build_confirm(counted: CountedEntry) -> Confirm | None:
    """Return what a counted event confirms: None if it is not valid, or the other kind confirms the offer."""
    event = counted.event
    if not isinstance(event, EVENTS) or not counted.is_valid:
        return None
    kind = _IMPRESSION if isinstance(event, Impression) else _CLICK
    return _build_confirm(event, kind) if event.charged_by == kind else None


def build_awaited_click(counted: CountedEntry) -> Confirm | None:
    """Return what an earlier click confirms that became valid with this impression."""
    event = counted.event
    if not isinstance(event, Impression) or event.charged_by != _CLICK:
        return None
    return _build_confirm(event, _CLICK)


def _build_confirm(event: Event, kind: ChargeKind) -> Confirm:
    assert event.request_id is not None
    assert event.slot is not None
    return Confirm(
        request_id=event.request_id,
        slot=event.slot,
        kind=kind,
        lease=event.lease,
        second=event.offered_at,
        amount=event.charge,
        banner_id=event.banner_id,
        placement_id=event.placement_id,
        occurred_at=event.occurred_at,
    )


def offer_key(confirm: Confirm) -> Offer:
    """Return the exact key of an offer; ids compare much faster as integers."""
    return confirm.request_id.int, confirm.slot
