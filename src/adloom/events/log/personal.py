"""Takes a user out of an event of the log."""

# pure

from msgspec.structs import replace

from adloom.events.log.event import (
    Click,
    Conversion,
    Event,
    Impression,
    UnreadableEntryError,
    decode_event,
    encode_event,
)


def remove_user(data: bytes) -> bytes | None:
    """Return an entry of the log without its user; None if it is not needed to count anything."""
    try:
        event = decode_event(data)
    except UnreadableEntryError:
        return None
    match event:
        case Impression() | Click():
            return encode_event(remove_personal(event))
        case Conversion():
            return data  # It names nobody.
        case _:
            return None


def remove_personal(event: Event) -> Event:
    """Return an event without its user, and without what may tell who that is."""
    address = "referrer_url" if isinstance(event, Impression) else "destination_url"
    personal = ("user_id", "session_id", "page_url", "client_network", address)
    return replace(event, **dict.fromkeys(personal))
