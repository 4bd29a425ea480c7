"""The newest entries of the log and their decoded forms, shared by the projections of a worker.

The first projection reads and decodes entries; its followers, each a little later, find both here.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from adloom.events.log.event import LogEntry, decode_events, parse_entry_id
from adloom.events.ports import DecodedEntry, EntryOf

KEPT_MAX: Final = 40_000  # Two of the largest batches: 66 MB of impressions, 48 of them decoded forms.
BYTES_MAX: Final = 2**25  # Of raw entries: three times those impressions. Large ones are as large decoded.
KEPT_SECONDS: Final = 4.0  # Followers that keep up have read them before: some take three seconds.


class RecentEntries:
    """Entries without a gap; the oldest are dropped by halves, and those that were added a while ago."""

    def __init__(self, *, kept_max: int = KEPT_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._kept_max = kept_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: list[LogEntry] = []
        self._records: list[DecodedEntry | None] = []  # Of each entry, once it was decoded.
        self._before = ""  # The entry before the first of them.
        self._dropped = 0  # How many there were before it.
        # When, and how many there were then, those dropped included.
        self._added: deque[tuple[float, int]] = deque()

    def add(self, after: str, entries: Sequence[LogEntry], *, at: float = 0.0) -> None:
        """Add what follows an entry; `at` is in seconds of any steady clock."""
        if not self._entries or self._entries[-1].id != after:
            self._drop(len(self._entries))
            self._before = after
        self._entries.extend(entries)
        self._records.extend([None] * len(entries))
        self._bytes += _count_bytes(entries)
        self._added.append((at, self._dropped + len(self._entries)))
        while self._added[0][0] <= at - KEPT_SECONDS:
            self._drop(self._added.popleft()[1] - self._dropped)
        if len(self._entries) > self._kept_max or self._bytes > self._bytes_max:
            self._drop(self._count_excess())

    def _count_excess(self) -> int:
        """Count the entries to drop so that half of what may be kept is left."""
        gone, left = max(0, len(self._entries) - self._kept_max // 2), self._bytes
        left -= _count_bytes(self._entries[:gone])
        while left > self._bytes_max // 2:
            left -= len(self._entries[gone].data)
            gone += 1
        return gone

    def _drop(self, count: int) -> None:
        """Drop so many of the oldest entries; some that were added together may be gone already."""
        if count <= 0:
            return
        self._before = self._entries[count - 1].id
        self._bytes -= _count_bytes(self._entries[:count])
        self._dropped += count
        del self._entries[:count], self._records[:count]

    def read_after(self, entry_id: str, *, count_max: int) -> list[LogEntry]:
        """Return what follows an entry; nothing if that is not known here."""
        entries = self._entries
        if not entries:
            return []
        start = 0 if entry_id == self._before else self._place_after(entry_id)
        if entry_id != (entries[start - 1].id if start else self._before):
            return []  # What lies between it and our first entry is not known.
        return entries[start : start + count_max]

    def ends_before(self, entry_id: str) -> bool:
        """Return whether all entries here come before what follows an entry, so that this may be added."""
        return not self._entries or parse_entry_id(self._entries[-1].id) <= parse_entry_id(entry_id)

    def decode(self, entries: Sequence[LogEntry]) -> list[DecodedEntry]:
        """Decode entries, each once for all projections; raises what decoding an unreadable one raises."""
        start = self._place_of(entries)
        end = start + len(entries)
        known = self._records[start:end] if start >= 0 else [None] * len(entries)
        found = [record for record in known if record is not None]
        if len(found) == len(entries):
            return found
        if found:
            unknown = [entry for entry, record in zip(entries, known, strict=True) if record is None]
            decoded = iter(_decode(unknown))
            found = [record or next(decoded) for record in known]
        else:  # As for the first projection that asks.
            found = _decode(entries)
        if start >= 0:
            self._records[start:end] = found
        return found

    def _place_of(self, entries: Sequence[LogEntry]) -> int:
        """Find these very entries: an id that was lost with the stream's end may be used again."""
        if not entries or not self._entries:
            return -1
        start = self._place_after(entries[0].id) - 1
        end = start + len(entries)
        if start < 0 or end > len(self._entries):
            return -1
        is_here = self._entries[start] is entries[0] and self._entries[end - 1] is entries[-1]
        return start if is_here else -1

    def _place_after(self, entry_id: str) -> int:
        return bisect_right(self._entries, parse_entry_id(entry_id), key=_parse_order)


def _decode(entries: Sequence[LogEntry]) -> list[DecodedEntry]:
    events = decode_events([entry.data for entry in entries])
    return list(map(EntryOf, [entry.id for entry in entries], events))


def _count_bytes(entries: Iterable[LogEntry]) -> int:
    return sum([len(entry.data) for entry in entries])


def _parse_order(entry: LogEntry) -> tuple[int, int]:
    return parse_entry_id(entry.id)
