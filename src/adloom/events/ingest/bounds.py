"""The most that one event may take of the log's memory, in bytes: a client fills it, and pays nothing."""

# pure

from typing import Final

from msgspec.structs import replace

from adloom.events.log.event import Click, Event, Impression, Mark, encode_event

ADDRESS_BYTES_MAX: Final = 2_048
# An address of so many characters fits, whatever they are.
SURELY_SHORT: Final = ADDRESS_BYTES_MAX // 4


def shorten_address(address: str) -> str:
    """Return an address that fits: without its query and fragment if it is too long, else cut off."""
    if len(address) <= SURELY_SHORT or len(address.encode(errors="replace")) <= ADDRESS_BYTES_MAX:
        return address
    path = address.partition("?")[0].partition("#")[0].encode(errors="replace")
    return path[:ADDRESS_BYTES_MAX].decode(errors="ignore")


def encode_bounded(event: Event) -> bytes:
    """Encode an event for the log, within its bounds.

    An event of a flood counts as invalid whatever it says, so nothing is kept that only describes it.
    """
    if event.marks and (Mark.ADDRESS_FLOOD in event.marks or Mark.CAMPAIGN_FLOOD in event.marks):
        nothing = {"session_id": None, "user_id": None, "page_url": None}
        match event:
            case Impression():
                event = replace(event, referrer_url=None, **nothing)
            case Click():
                event = replace(event, destination_url=None, **nothing)
        return encode_event(event)
    page = event.page_url
    if page is not None and len(page) > SURELY_SHORT:
        event = replace(event, page_url=shorten_address(page))
    if isinstance(event, Impression):
        if event.referrer_url is not None and len(event.referrer_url) > SURELY_SHORT:
            event = replace(event, referrer_url=shorten_address(event.referrer_url))
    elif event.destination_url is not None and len(event.destination_url) > SURELY_SHORT:
        event = replace(event, destination_url=shorten_address(event.destination_url))
    return encode_event(event)
