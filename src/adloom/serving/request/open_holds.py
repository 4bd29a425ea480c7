"""Offers that an address has out, in this process's memory and in bounded space."""

# pure

import sys
from collections import OrderedDict

from adloom.events.ingest.ivt.minute_counts import ADDRESSES_MAX, IPV6_KEY_BYTES, WIDE_BYTES, WIDE_FACTOR


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
        """Count offers of an answer that are about to hold something; False if there are too many out.

        An answer may go beyond the bound: one with more offers than the bound would be free for everybody.
        """
        period = second // self._owner.hold_seconds
        if period != self._period:
            self._begin(period)
        if self._offers + self._before >= self._bound:
            return False
        if self._wide is not None and not self._wide.take(offers, second):
            return False
        self._offers += offers
        return True

    def release(self, second: int, offers: int = 1) -> None:
        """Count offers as seen. Another process may have made them, as offers of this one may be seen there."""
        period = second // self._owner.hold_seconds
        if period != self._period:
            self._begin(period)
        self._offers = max(-self._bound, self._offers - offers)
        if self._wide is not None:
            self._wide.release(second, offers)

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
