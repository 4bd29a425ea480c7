"""The newest entries of the ledger, and what was read of them: the projections of a worker fold the same ones.

The first of them takes entries from the ledger and reads them; those who follow it, each a little later, find both here.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from adloom.events.log.entry import LogEntry, parse_entry_id
from adloom.events.log.event import decode_event
from adloom.events.ports import DecodedEntry

KEPT_MAX: Final = 40_000  # Two of the largest batches: 66 MB of impressions, of which 48 are what was read.
BYTES_MAX: Final = (
    2**25
)  # Of entries as the ledger has them: thrice those impressions. What is read of large ones is as large.


class RecentEntries:
    """Entries without a gap; those that were taken longest ago are forgotten by halves."""

    def __init__(self, *, kept_max: int = KEPT_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._kept_max = kept_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: list[LogEntry] = []
        self._records: list[DecodedEntry | None] = []  # Of each entry, once it was read.
        self._before = ""  # The entry before the first of them.

    def add(self, after: str, entries: Sequence[LogEntry]) -> None:
        """Keep entries that follow another."""
        if not self._entries or self._entries[-1].id != after:
            self._entries, self._records, self._before, self._bytes = [], [], after, 0
        self._entries.extend(entries)
        self._records.extend([None] * len(entries))
        self._bytes += _bytes_of(entries)
        if len(self._entries) > self._kept_max or self._bytes > self._bytes_max:
            self._forget()

    def _forget(self) -> None:
        """Forget so many that half of what may be kept is left."""
        gone, left = max(0, len(self._entries) - self._kept_max // 2), self._bytes
        left -= _bytes_of(self._entries[:gone])
        while left > self._bytes_max // 2:
            left -= len(self._entries[gone].data)
            gone += 1
        self._before, self._bytes = self._entries[gone - 1].id, left
        del self._entries[:gone], self._records[:gone]

    def read_after(self, entry_id: str, *, count_max: int) -> list[LogEntry]:
        """Give what follows an entry; nothing where that is not known here."""
        entries = self._entries
        if not entries:
            return []
        start = 0 if entry_id == self._before else self._place_after(entry_id)
        if entry_id != (entries[start - 1].id if start else self._before):
            return []  # What lies between it and the first of ours is not known.
        return entries[start : start + count_max]

    def ends_before(self, entry_id: str) -> bool:
        """Tell whether all there is here comes before what follows an entry, so that this may be added."""
        return not self._entries or parse_entry_id(self._entries[-1].id) <= parse_entry_id(entry_id)

    def decode(self, entries: Sequence[LogEntry]) -> list[DecodedEntry]:
        """Read entries, each once for all; whatever the reader raises over one that is no event leaves this."""
        start = self._place_of(entries)
        end = start + len(entries)
        known = self._records[start:end] if start >= 0 else [None] * len(entries)
        found = [record for record in known if record is not None]
        if len(found) == len(entries):
            return found
        found = [
            record or DecodedEntry(entry.id, decode_event(entry.data))
            for entry, record in zip(entries, known, strict=True)
        ]
        if start >= 0:
            self._records[start:end] = found
        return found

    def _place_of(self, entries: Sequence[LogEntry]) -> int:
        """Find these very entries here: an id that was lost with the stream's end may be given again."""
        if not entries or not self._entries:
            return -1
        start = self._place_after(entries[0].id) - 1
        end = start + len(entries)
        if start < 0 or end > len(self._entries):
            return -1
        is_here = self._entries[start] is entries[0] and self._entries[end - 1] is entries[-1]
        return start if is_here else -1

    def _place_after(self, entry_id: str) -> int:
        return bisect_right(self._entries, parse_entry_id(entry_id), key=_order)


def _bytes_of(entries: Iterable[LogEntry]) -> int:
    return sum([len(entry.data) for entry in entries])


def _order(entry: LogEntry) -> tuple[int, int]:
    return parse_entry_id(entry.id)
