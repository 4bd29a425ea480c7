"""Counts by client address, in this process's memory and in bounded space."""

# pure

from array import array
from typing import Final

MINUTE_SECONDS: Final = 60
COUNTERS: Final = 1 << 16  # 256 KB: addresses that share one share its bound.
_MASK: Final = COUNTERS - 1
_NO_COUNTS: Final = bytes(4 * COUNTERS)
# A provider gives a customer a /48 of IPv6 at most: 65,536 networks of /64, which are counted together too.
IPV6_KEY_BYTES: Final = 8
WIDE_BYTES: Final = 6
WIDE_FACTOR: Final = 4
ADDRESSES_MAX: Final = 50_000


class MinuteCounts:
    """Counts of every address in the current minute; a bound of zero is none."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._wide_bound = WIDE_FACTOR * bound
        self._counts = array("I", _NO_COUNTS)
        self.ends_second = 0

    def exceeds(self, key: bytes, second: int) -> bool:
        """Count one more, and return whether that is beyond the bound."""
        # A clock that was set back begins another minute too.
        if not self.ends_second - MINUTE_SECONDS <= second < self.ends_second:
            self._counts = array("I", _NO_COUNTS)
            self.ends_second = second + MINUTE_SECONDS
        counts = self._counts
        place = hash(key) & _MASK
        counts[place] = count = counts[place] + 1
        if len(key) == IPV6_KEY_BYTES:
            place = hash(key[:WIDE_BYTES]) & _MASK
            counts[place] = wide = counts[place] + 1
            if wide > self._wide_bound > 0:
                return True
        return count > self._bound > 0


class OpenHolds:
    """How many offers that hold budget each address has out: those of the last two hold times, less those seen."""

    def __init__(self, bound: int, *, hold_seconds: int, addresses_max: int = ADDRESSES_MAX) -> None:
        self._bound = bound
        self._hold_seconds = hold_seconds
        self._addresses_max = addresses_max
        self._open: dict[bytes, list[int]] = {}  # Period, offers of it, and of the one before.

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
            del self._open[next(iter(self._open))]
        return begun
