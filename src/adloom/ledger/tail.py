"""The newest entries of the ledger, as the first projection of a worker took them, for those who follow it there."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Final

from adloom.ledger.stream import Entry, entry_order

KEPT_MAX: Final = 40_000  # Two of the largest batches: 16 MB of impressions.


class Tail:
    """Entries without a gap; those that were taken longest ago are forgotten by halves."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._entries: list[Entry] = []
        self._before = ""  # The entry before the first of them.

    def add(self, after: str, entries: Sequence[Entry]) -> None:
        """Keep entries that follow another."""
        if not self._entries or self._entries[-1].id != after:
            self._entries, self._before = [], after
        self._entries.extend(entries)
        if len(self._entries) > self._kept_max:
            gone = len(self._entries) - self._kept_max // 2
            self._before = self._entries[gone - 1].id
            del self._entries[:gone]

    def after(self, entry_id: str, *, count_max: int) -> list[Entry]:
        """Give what follows an entry; nothing where that is not known here."""
        entries = self._entries
        if not entries:
            return []
        if entry_id == self._before:
            start = 0
        else:
            start = bisect_right(entries, entry_order(entry_id), key=_order)
            if start == 0 or entries[start - 1].id != entry_id:
                return []  # What lies between it and the first of ours is not known.
        return list(islice(entries, start, start + count_max))


def _order(entry: Entry) -> tuple[int, int]:
    return entry_order(entry.id)
