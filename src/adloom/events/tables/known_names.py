"""Which correlation ids the tables have, remembered by whoever writes them, so that a new one need not be looked up.

Nine days of a million events each are nine searches an event in nine indexes; here it is a look at a few
bits. It only ever saves a search: what may be known is looked up in the tables, which alone decide.

It holds while nobody else writes. The cursor tells: it moves with every batch, so whoever finds it where
he left it has seen all that was written; the identity of the table tells when a rebuilt one took its place.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Final

import msgspec

from adloom.events.tables.apply_batch import CLICKS, IMPRESSIONS, KINDS, Additions
from adloom.events.tables.name_filter import SEGMENT_NAMES, NameFilter

SEGMENTS_MAX: Final = 16  # 128 MB a kind; where a week of events needs more, they are all looked up.
BATCH_MIN: Final = 500  # Batches that are smaller are looked up cheaply enough.
CHUNK_NAMES: Final = 10_000  # A few hundredths of a second of reading, after a batch.


class UnreadIds(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the tables whose names are yet to be read: those of a day that come after one."""

    kind: str
    day: date
    count_max: int
    after: str = ""


class DedupFilter:
    """Filters of the names in the tables, read little by little, and kept up with every batch."""

    def __init__(
        self,
        *,
        segment_names: int = SEGMENT_NAMES,
        batch_min: int = BATCH_MIN,
        chunk_names: int = CHUNK_NAMES,
    ) -> None:
        self._segment_names = segment_names
        self._batch_min = batch_min
        self._chunk_names = chunk_names
        self._seen_at: tuple[str, int] | None = None
        self._filters: dict[str, NameFilter] = {}
        self._read: set[tuple[str, date]] = set()
        self._reading: UnreadIds | None = None
        self._forget()

    def begin(self, *, cursor: str, table: int) -> None:
        """Take a batch up at a cursor of a table; forget everything if that is not where we left it."""
        if self._seen_at != (cursor, table):
            self._forget()
        self._seen_at = (cursor, table)

    def select_doubtful(self, kind: str, names: Sequence[str], days: Collection[date]) -> Sequence[str]:
        """Give the names that must be looked up in some days: all, as long as not all days are read."""
        if not all((kind, day) in self._read for day in days):
            return names
        return self._filters[kind].among(names)

    def add_batch(self, after: str, cursor: str, added: Additions, days_before: Collection[date]) -> None:
        """Take in what a batch has added; a day that had no rows before it is read by that."""
        if self._seen_at is None or self._seen_at[0] != after:
            return  # A batch without events, and others before it: the next one will find that out.
        for kind, rows in ((IMPRESSIONS, added.impressions), (CLICKS, added.clicks)):
            if rows:
                last_day = max(row.occurred_at for row in rows).date()
                self._filters[kind].add([row.correlation_id for row in rows], last_day=last_day)
        written = {row.occurred_at.date() for row in (*added.impressions, *added.clicks)}
        self._read |= {(kind, day) for day in written.difference(days_before) for kind in KINDS}
        self._seen_at = (cursor, self._seen_at[1])

    def next_unread(self, added: Additions, days: Collection[date]) -> UnreadIds | None:
        """Tell what to read after a batch, the newest first; None where that is all, or too much, or not worth it."""
        if added.size < self._batch_min or any(
            one.segments >= SEGMENTS_MAX for one in self._filters.values()
        ):
            return None
        if self._reading is None:
            parts = [(day, kind) for day in days for kind in KINDS if (kind, day) not in self._read]
            if parts:
                day, kind = max(parts)
                self._reading = UnreadIds(kind=kind, day=day, count_max=self._chunk_names)
        return self._reading

    def add_read(self, part: UnreadIds, names: Sequence[str]) -> None:
        """Take in names that were read from the tables, in their order."""
        if part != self._reading:
            return  # Everything was forgotten meanwhile.
        self._filters[part.kind].add(names, last_day=part.day)
        if len(names) < part.count_max:
            self._read.add((part.kind, part.day))
            self._reading = None
        else:
            self._reading = msgspec.structs.replace(part, after=names[-1])

    def drop_before(self, day: date) -> None:
        """Forget days that are no longer looked into."""
        self._read = {(kind, one) for kind, one in self._read if one >= day}
        if self._reading is not None and self._reading.day < day:
            self._reading = None
        for one in self._filters.values():
            one.forget_before(day)

    def _forget(self) -> None:
        self._filters = {kind: NameFilter(segment_names=self._segment_names) for kind in KINDS}
        self._read = set()
        self._reading = None
