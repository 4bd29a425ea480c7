"""mulberry32, a small generator of numbers that is the same in every language: for figures that can be repeated."""

# pure

from typing import Final

MASK: Final = 0xFFFF_FFFF
STEP: Final = 0x6D2B_79F5
RANGE: Final = 2.0**32


class Mulberry32:
    """Draws numbers from a seed of 32 bits."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        assert 0 <= seed <= MASK, "a seed has 32 bits"
        self._state = seed

    def random(self) -> float:
        """Draw from [0, 1)."""
        state = self._state = (self._state + STEP) & MASK
        mixed = ((state ^ (state >> 15)) * (state | 1)) & MASK
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & MASK)) & MASK
        return ((mixed ^ (mixed >> 14)) & MASK) / RANGE
