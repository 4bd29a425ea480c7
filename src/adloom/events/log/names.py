"""Names of events, which have no user in them."""

# pure

from hashlib import sha256
from typing import Final
from uuid import UUID

_ID_DIGITS: Final = 32
OFFER_NAMES: Final = "offer:"  # Events of an offer are named by it; no other name begins so.
FLAGGED: Final = ":flagged"  # How the name of an offer's event ends that may not be the visitor's.


def find_offer_name(name: str, request_id: UUID, slot: int) -> str:
    """Return the name of an event's offer: in the event's own name, unless that is from an earlier version."""
    return name.removesuffix(FLAGGED) if name.startswith(OFFER_NAMES) else f"{OFFER_NAMES}{request_id}:{slot}"


def hide_user(name: str, user_id: UUID) -> str:
    """Return the name of an event, or a hash of it if the user's id is in it, in any spelling.

    Names are kept after a user is erased, and are shown to accounts.
    """
    if len(name) < _ID_DIGITS:
        return name
    has_user = user_id.hex in name.replace("-", "").lower()
    return f"h:{sha256(name.encode(errors='surrogatepass')).hexdigest()}" if has_user else name
