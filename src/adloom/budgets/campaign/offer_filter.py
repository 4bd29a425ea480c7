"""A Bloom filter of offers: it may take a new one for an old one, and never an old one for a new one."""

import math
from collections.abc import Iterable
from typing import Final

from adloom.budgets.campaign.seen import Offer

# Keys are numbers that nobody outside can choose; this only spreads them a second time.
SPREAD: Final = 0x9E37_79B9_7F4A_7C15
# Of each key. Thirteen would do with half the room, at three times the time for each offer.
PLACES: Final = 4


class OfferFilter:
    """As large as the error rate asks for when the filter is full."""

    def __init__(self, offers_max: int, error_rate: float) -> None:
        places = math.ceil(-PLACES * offers_max / math.log1p(-(error_rate ** (1 / PLACES))))
        self._mask = (1 << (places - 1).bit_length()) - 1
        # A byte a place instead of a bit: two megabytes for a filter, and half the time for each offer.
        self._taken = bytearray(self._mask + 1)

    def update(self, keys: Iterable[Offer], /) -> None:
        """Remember offers."""
        taken, mask = self._taken, self._mask
        for place in map(hash, keys):
            step = (place * SPREAD >> 32) | 1
            taken[place & mask] = 1
            taken[place + step & mask] = 1
            taken[place + 2 * step & mask] = 1
            taken[place + 3 * step & mask] = 1

    def __contains__(self, key: object, /) -> bool:
        taken, mask, place = self._taken, self._mask, hash(key)
        step = (place * SPREAD >> 32) | 1
        return bool(
            taken[place & mask]
            and taken[place + step & mask]
            and taken[place + 2 * step & mask]
            and taken[place + 3 * step & mask]
        )
