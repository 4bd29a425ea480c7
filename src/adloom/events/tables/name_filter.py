"""A set of names that takes little room: it may take a stranger for one of its own, but never the other way round."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

# Of a thousand strangers two are taken for known, at four places a name and all segments full.
BITS_PER_NAME: Final = 16
SEGMENT_NAMES: Final = 4_000_000


class NameFilter:
    """Bloom filters one after the other; the oldest go when all their names are of days that are over."""

    def __init__(self, *, segment_names: int = SEGMENT_NAMES) -> None:
        self._segment_names = segment_names
        self._segments: list[_Segment] = []

    @property
    def segments(self) -> int:
        """How many filters there are; each takes two bytes a name."""
        return len(self._segments)

    def add(self, names: Iterable[str], *, last_day: date) -> None:
        """Take names in, none of which is of a later day."""
        if not self._segments or self._segments[-1].names >= self._segment_names:
            self._segments.append(_Segment(self._segment_names, last_day))
        self._segments[-1].add(names, last_day)

    def among(self, names: Sequence[str]) -> list[str]:
        """Give the names that may be in it; those that are not given are not."""
        found = {name for segment in self._segments for name in segment.among(names)}
        return [name for name in names if name in found]

    def forget_before(self, day: date) -> None:
        """Forget what is only of days before one."""
        self._segments = [segment for segment in self._segments if segment.last_day >= day]


class _Segment:
    def __init__(self, capacity: int, last_day: date) -> None:
        bits = 1 << max(3, (capacity * BITS_PER_NAME - 1).bit_length())
        self._mask = bits - 1
        self._bits = bytearray(bits // 8)
        self.names = 0
        self.last_day = last_day

    def add(self, names: Iterable[str], last_day: date) -> None:
        bits, mask = self._bits, self._mask
        for name in names:
            # Seeded anew in every process, so nobody can choose names that look alike to it.
            place = hash(name)
            step = place >> 32 | 1
            second, third, fourth = place + step & mask, place + 2 * step & mask, place + 3 * step & mask
            place &= mask
            bits[place >> 3] |= 1 << (place & 7)
            bits[second >> 3] |= 1 << (second & 7)
            bits[third >> 3] |= 1 << (third & 7)
            bits[fourth >> 3] |= 1 << (fourth & 7)
            self.names += 1
        self.last_day = max(self.last_day, last_day)

    def among(self, names: Sequence[str]) -> list[str]:
        bits, mask, has = self._bits, self._mask, self._has
        # Most strangers are known by the first place.
        return [
            name
            for name in names
            if bits[((place := hash(name)) & mask) >> 3] >> (place & 7) & 1 and has(place)
        ]

    def _has(self, place: int) -> bool:
        step = place >> 32 | 1
        places = (place + step, place + 2 * step, place + 3 * step)
        return all(self._bits[(at & self._mask) >> 3] >> (at & 7) & 1 for at in places)
