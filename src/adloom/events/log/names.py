"""Names of events, which have no user in them."""

# pure

from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from uuid import UUID

from adloom.events.log.event import Event

_ID_DIGITS: Final = 32
OFFER_NAMES: Final = "offer:"  # Events of an offer are named by it; no other name begins so.
FLAGGED: Final = ":flagged"  # How the name of an offer's event ends that may not be the visitor's.


def find_offer_name(name: str, request_id: UUID, slot: int) -> str:
    """Return the name of an event's offer: in the event's own name, unless that is from an earlier version."""
    return name.removesuffix(FLAGGED) if name.startswith(OFFER_NAMES) else f"{OFFER_NAMES}{request_id}:{slot}"


def list_names(events: Sequence[Event]) -> list[str]:
    """Return the names of events, and those of their offers where they are others."""
    names = [event.correlation_id for event in events]
    # Nearly all have the names of their offers, and finding that out here takes half as long as asking.
    return names + [
        find_offer_name(name, event.request_id, event.slot)
        for event, name in zip(events, names, strict=True)
        if (not name.startswith(OFFER_NAMES) or name.endswith(FLAGGED))
        and event.request_id is not None
        and event.slot is not None
    ]


def hide_user(name: str, user_id: UUID) -> str:
    """Return the name of an event, or a hash of it if the user's id is in it, in any spelling.

    Names are kept after a user is erased, and are shown to accounts.
    """
    if len(name) < _ID_DIGITS:
        return name
    has_user = user_id.hex in name.replace("-", "").lower()
    return f"h:{sha256(name.encode(errors='surrogatepass')).hexdigest()}" if has_user else name
