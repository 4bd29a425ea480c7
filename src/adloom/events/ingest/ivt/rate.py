"""How many events one address sends in a minute, and whether that is a flood."""

# pure

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

import msgspec

MINUTE: Final = timedelta(minutes=1)
NO_TIME: Final = timedelta()
# About 10 MB. Beyond it the address not seen for the longest time is forgotten. One that floods is seen too
# often for that: 50,000 others would have to come between two of its events.
ADDRESSES_MAX: Final = 50_000


class AddressMinute(msgspec.Struct, frozen=True, gc=False):
    """The events of an address in a minute that began with the first of them."""

    began_at: datetime
    events: int


def count_event(minute: AddressMinute | None, now: datetime) -> AddressMinute:
    # A clock that was set back begins another minute too: else the old one would mark events for hours.
    if minute is None or not NO_TIME <= now - minute.began_at < MINUTE:
        return AddressMinute(now, 1)
    return AddressMinute(minute.began_at, minute.events + 1)


class FloodCounter:
    """Counts the events of every address in this process; a bound of zero turns it off."""

    def __init__(self, events_per_minute_max: int, *, addresses_max: int = ADDRESSES_MAX) -> None:
        self._events_max = events_per_minute_max
        self._addresses_max = addresses_max
        self._minutes: OrderedDict[bytes, AddressMinute] = OrderedDict()

    def __len__(self) -> int:
        return len(self._minutes)

    def count_event(self, address: bytes, now: datetime) -> bool:
        """Count an event of an address, and return whether it exceeds the bound of its minute."""
        if not self._events_max:
            return False
        minutes = self._minutes
        minutes[address] = minute = count_event(minutes.get(address), now)
        minutes.move_to_end(address)
        if len(minutes) > self._addresses_max:
            minutes.popitem(last=False)
        return minute.events > self._events_max
