"""How many events one address sends in a minute, and from which on it is a flood."""

# pure

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

import msgspec

MINUTE: Final = timedelta(minutes=1)
NO_TIME: Final = timedelta()
# About 10 MB. Beyond it the address not seen for the longest starts afresh. One that floods is seen
# too often for that: 50,000 others would have to come between two of its events.
ADDRESSES_MAX: Final = 50_000


class AddressMinute(msgspec.Struct, frozen=True, gc=False):
    """The minute of an address, which begins with its first event, and the events in it so far."""

    began_at: datetime
    events: int


def count_event(minute: AddressMinute | None, now: datetime) -> AddressMinute:
    """Count one more event: in the minute under way, or as the first of another."""
    # A clock that was set back begins another minute too; one that never ended would mark for hours.
    if minute is None or not NO_TIME <= now - minute.began_at < MINUTE:
        return AddressMinute(now, 1)
    return AddressMinute(minute.began_at, minute.events + 1)


class FloodCounter:
    """The minutes of all addresses that this process hears from; zero events a minute turn it off."""

    def __init__(self, events_per_minute_max: int, *, addresses_max: int = ADDRESSES_MAX) -> None:
        self._events_max = events_per_minute_max
        self._addresses_max = addresses_max
        self._minutes: OrderedDict[bytes, AddressMinute] = OrderedDict()

    def __len__(self) -> int:
        return len(self._minutes)

    def count_event(self, address: bytes, now: datetime) -> bool:
        """Count an event of an address, and tell whether it is one too many in its minute."""
        if not self._events_max:
            return False
        minutes = self._minutes
        minutes[address] = minute = count_event(minutes.get(address), now)
        minutes.move_to_end(address)
        if len(minutes) > self._addresses_max:
            minutes.popitem(last=False)
        return minute.events > self._events_max
