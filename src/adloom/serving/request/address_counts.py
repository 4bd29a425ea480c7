"""Counts by client address, in this process's memory and in bounded space."""

# pure

import math
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

    __slots__ = ("_bound", "_count", "_wide", "ends_at")

    def __init__(self, bound: float, wide: "AddressCount | None" = None) -> None:
        self._bound = bound
        self._count = 0
        self._wide = wide
        self.ends_at = 0.0

    def exceeds(self, second: float) -> bool:
        """Count one more, and return whether that is beyond the bound."""
        # A clock that was set back begins another minute too.
        if not self.ends_at - MINUTE_SECONDS <= second < self.ends_at:
            self.ends_at = second + MINUTE_SECONDS
            self._count = 0
        self._count = count = self._count + 1
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


class OpenHolds:
    """How many offers that hold budget each address has out: those of the last two hold times, less those seen."""

    def __init__(self, bound: int, *, hold_seconds: int, addresses_max: int = ADDRESSES_MAX) -> None:
        self._bound = bound
        self._hold_seconds = hold_seconds
        self._addresses_max = addresses_max
        self._open: OrderedDict[bytes, list[int]] = (
            OrderedDict()
        )  # Period, offers of it, and of the one before.

    def __len__(self) -> int:
        return len(self._open)

    def take(self, key: bytes, offers: int, second: int) -> bool:
        """Count offers that are about to hold something; False if an address has too many out."""
        bound = self._bound
        if not bound:
            return True
        period = second // self._hold_seconds
        # As `_add`: on the path of every offer with a price, where a call would cost as much as the count.
        known = self._open.get(key)
        if known is None or known[0] != period:
            known = self._begin(key, known, period)
        after = known[1] + offers
        if after + known[2] > bound:
            return False
        if len(key) == IPV6_KEY_BYTES and not self._add(
            key[:WIDE_BYTES], offers, period, WIDE_FACTOR * bound
        ):
            return False
        known[1] = after
        return True

    def release(self, key: bytes, second: int) -> None:
        """Count an offer as seen. Another process may have made it, as offers of this one may be seen there."""
        period = second // self._hold_seconds
        self._add(key, -1, period, self._bound)
        if len(key) == IPV6_KEY_BYTES:
            self._add(key[:WIDE_BYTES], -1, period, WIDE_FACTOR * self._bound)

    def _add(self, key: bytes, offers: int, period: int, bound: int) -> bool:
        known = self._open.get(key)
        if known is None or known[0] != period:
            known = self._begin(key, known, period)
        after = known[1] + offers
        if after + known[2] > bound:
            return False
        known[1] = max(-bound, after)
        return True

    def _begin(self, key: bytes, known: list[int] | None, period: int) -> list[int]:
        before = 0
        if known is not None:
            del self._open[key]
            before = known[1] if known[0] == period - 1 else 0
        # Last in order: of too many addresses the one whose period began first is forgotten.
        self._open[key] = begun = [period, 0, before]
        if len(self._open) > self._addresses_max:
            self._open.popitem(last=False)
        return begun
