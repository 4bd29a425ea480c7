"""Takes a user out of an entry of the log."""

# pure

from msgspec.structs import replace

from adloom.events.log.event import (
    Click,
    Conversion,
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
    nothing = {"user_id": None, "session_id": None, "page_url": None, "client_network": None}
    match event:
        case Impression():
            return encode_event(replace(event, referrer_url=None, **nothing))
        case Click():
            return encode_event(replace(event, destination_url=None, **nothing))
        case Conversion():
            return data  # It names nobody.
        case _:
            return None
