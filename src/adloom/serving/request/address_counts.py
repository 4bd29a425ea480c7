"""Counts by client address, in this process's memory and in bounded space."""

# pure

import math
import sys
from collections import OrderedDict
from typing import Final

MINUTE_SECONDS: Final = 60
# A provider gives a customer a /48 of IPv6 at most: 65,536 networks of /64, which are counted together too.
IPV6_KEY_BYTES: Final = 8
WIDE_BYTES: Final = 6
WIDE_FACTOR: Final = 4
ADDRESSES_MAX: Final = 50_000


class AddressCount:
    """The requests of an address in a minute that begins with the first of them."""

    __slots__ = ("_begins_at", "_bound", "_count", "_wide", "ends_at")

    def __init__(self, bound: float, wide: "AddressCount | None" = None) -> None:
        self._bound = bound
        self._count = 0
        self._wide = wide
        self._begins_at = self.ends_at = 0.0

    def exceeds(self, second: float) -> bool:
        """Count one more, and return whether that is beyond the bound."""
        # A clock that was set back begins another minute too.
        if self._begins_at <= second < self.ends_at:
            self._count = count = self._count + 1
        else:
            self._begins_at, self.ends_at = second, second + MINUTE_SECONDS
            self._count = count = 1
        is_beyond = count > self._bound
        return is_beyond if self._wide is None else self._wide.exceeds(second) or is_beyond

    def find_wait(self, second: float) -> int:
        """Return the seconds until a request is allowed again; at least one."""
        beyond = self if self._wide is None or self._count > self._bound else self._wide
        return max(1, math.ceil(beyond.ends_at - second))


class MinuteCounts:
    """The counts of all addresses; a bound of zero is none.

    Of too many addresses the first to come is forgotten, and begins again.
    """

    def __init__(self, bound: int, *, addresses_max: int = ADDRESSES_MAX) -> None:
        self._bound = bound or math.inf
        self._addresses_max = addresses_max
        self._counts: OrderedDict[bytes, AddressCount] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def exceeds(self, key: bytes, second: float) -> bool:
        """Count one more of an address, and return whether that is beyond the bound."""
        return self.find(key).exceeds(second)

    def find(self, key: bytes) -> AddressCount:
        return self._counts.get(key) or self._begin(key)

    def _begin(self, key: bytes) -> AddressCount:
        if len(key) == IPV6_KEY_BYTES:
            wide = self._counts.get(key[:WIDE_BYTES]) or self._add(
                key[:WIDE_BYTES], AddressCount(WIDE_FACTOR * self._bound)
            )
            return self._add(key, AddressCount(self._bound, wide))
        return self._add(key, AddressCount(self._bound))

    def _add(self, key: bytes, count: AddressCount) -> AddressCount:
        self._counts[key] = count
        if len(self._counts) > self._addresses_max:
            self._counts.popitem(last=False)
        return count


class AddressHolds:
    """The offers of an address that are out: those of this hold time, and of the one before."""

    __slots__ = ("_before", "_bound", "_key", "_offers", "_owner", "_period", "_wide")

    def __init__(
        self, owner: "OpenHolds", key: bytes, bound: int, wide: "AddressHolds | None" = None
    ) -> None:
        self._owner = owner
        self._key = key
        self._bound = bound
        self._wide = wide
        self._period = 0
        self._offers = 0
        self._before = 0

    def take(self, offers: int, second: int) -> bool:
        """Count offers that are about to hold something; False if there are too many out."""
        period = second // self._owner.hold_seconds
        if period != self._period:
            self._begin(period)
        after = self._offers + offers
        if after + self._before > self._bound:
            return False
        if self._wide is not None and not self._wide.take(offers, second):
            return False
        self._offers = after
        return True

    def release(self, second: int) -> None:
        """Count an offer as seen. Another process may have made it, as offers of this one may be seen there."""
        period = second // self._owner.hold_seconds
        if period != self._period:
            self._begin(period)
        self._offers = max(-self._bound, self._offers - 1)
        if self._wide is not None:
            self._wide.release(second)

    def _begin(self, period: int) -> None:
        self._before = self._offers if self._period == period - 1 else 0
        self._period, self._offers = period, 0
        self._owner.move_last(self._key)


class OpenHolds:
    """How many offers that hold budget each address has out: those of the last two hold times, less those seen."""

    def __init__(self, bound: int, *, hold_seconds: int, addresses_max: int = ADDRESSES_MAX) -> None:
        self._bound = bound or sys.maxsize
        self.hold_seconds = hold_seconds
        self._addresses_max = addresses_max
        self._open: OrderedDict[bytes, AddressHolds] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def find(self, key: bytes) -> AddressHolds:
        return self._open.get(key) or self._add(key)

    def _add(self, key: bytes) -> AddressHolds:
        if len(key) == IPV6_KEY_BYTES:
            bound, wide = self._bound, self.find(key[:WIDE_BYTES])
        else:
            bound, wide = self._bound * (WIDE_FACTOR if len(key) == WIDE_BYTES else 1), None
        self._open[key] = holds = AddressHolds(self, key, bound, wide)
        if len(self._open) > self._addresses_max:
            self._open.popitem(last=False)
        return holds

    def move_last(self, key: bytes) -> None:
        """Of too many addresses the one whose period began first is forgotten."""
        if key in self._open:
            self._open.move_to_end(key)
