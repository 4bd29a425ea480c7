"""A Bloom filter of offers: it may take a new one for an old one, and never an old one for a new one."""

import math
from typing import Final

from adloom.brain.seen import Offer

# Keys are numbers that nobody outside can choose; this only spreads them a second time.
SPREAD: Final = 0x9E37_79B9_7F4A_7C15


class OfferFilter:
    """As many places, and places a key, as the error rate asks for when the filter is full."""

    def __init__(self, offers_max: int, error_rate: float) -> None:
        places = math.ceil(-offers_max * math.log(error_rate) / math.log(2) ** 2)
        self._mask = (1 << (places - 1).bit_length()) - 1
        self._turns = range(max(1, round(-math.log2(error_rate))))
        # A byte a place instead of a bit: a megabyte for a filter, and half the time for each offer.
        self._taken = bytearray(self._mask + 1)

    def add(self, key: Offer, /) -> None:
        """Remember an offer."""
        taken, mask, place = self._taken, self._mask, hash(key)
        step = (place * SPREAD >> 32) | 1
        for _ in self._turns:
            taken[place & mask] = 1
            place += step

    def __contains__(self, key: object, /) -> bool:
        taken, mask, place = self._taken, self._mask, hash(key)
        step = (place * SPREAD >> 32) | 1
        for _ in self._turns:
            if not taken[place & mask]:
                return False
            place += step
        return True
