"""Dedup filter: Bloom filters of the correlation ids in the event tables, so that a new id needs no look-up.

It has the names of offers too, where an event is not named by its offer: so an offer that it does not know has no rows.

Nine days of a million events each are nine index searches an event, and for its offer twice as many. The filter replaces them by a look at a
few bits. False positives yes, false negatives never: an id that may be known is looked up in the tables,
and only they decide.

The filter holds as long as nobody else writes. The cursor proves that, because it moves with every batch;
the table's oid changes when a rebuilt table takes its place. In both cases the filter starts empty.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Final

import msgspec
from rbloom import Bloom

from adloom.events.log.names import list_names
from adloom.events.tables.apply_batch import CLICKS, IMPRESSIONS, KINDS, Additions

SEGMENT_IDS: Final = 4_000_000
# The first segment is so small a part of the others: scattered bits touch all its memory with a few thousand ids.
FIRST_PART: Final = 32
ERROR_RATE: Final = 0.002  # Of a full segment.
SEGMENTS_MAX: Final = 16  # 104 MB a kind. Where a week of events needs more, every id is looked up.
BATCH_MIN: Final = 500  # Looking up a smaller batch is cheap enough.
CHUNK_IDS: Final = 10_000  # A few hundredths of a second of reading, after a batch.


class UnreadIds(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of a day that are yet to be read from the tables: those that sort after one."""

    kind: str
    day: date
    count_max: int
    after: str = ""


class DedupFilter:
    """Filters of both kinds, filled by every batch and, little by little, from the tables."""

    def __init__(
        self, *, segment_ids: int = SEGMENT_IDS, batch_min: int = BATCH_MIN, chunk_ids: int = CHUNK_IDS
    ) -> None:
        self._segment_ids = segment_ids
        self._batch_min = batch_min
        self._chunk_ids = chunk_ids
        self._valid_at: tuple[str, int] | None = None  # The cursor and the table that the filter belongs to.
        self._clear()

    def _clear(self) -> None:
        self._filters = {kind: IdFilter(self._segment_ids) for kind in KINDS}
        self._complete: set[tuple[str, date]] = set()
        self._reading: UnreadIds | None = None

    def begin(self, *, cursor: str, table: int) -> None:
        """Start a batch; clear the filter if another process has written since the last one."""
        if self._valid_at != (cursor, table):
            self._clear()
        self._valid_at = (cursor, table)

    def select_doubtful(self, kind: str, ids: Collection[str], days: Collection[date]) -> Collection[str]:
        """Return the ids to look up: all of them until every day is read."""
        if not all((kind, day) in self._complete for day in days):
            return ids
        return self._filters[kind].select(ids)

    def add_batch(self, after: str, cursor: str, added: Additions, days_before: Collection[date]) -> None:
        """Add what a batch has written; a day without rows before it is complete by that."""
        if self._valid_at is None or self._valid_at[0] != after:
            return  # Batches without events came before this one; the next `begin` notices.
        for kind, rows in ((IMPRESSIONS, added.impressions), (CLICKS, added.clicks)):
            if rows:
                self._filters[kind].add(list_names([row.event for row in rows]), last_day=max(added.days))
        self._complete |= {(kind, day) for day in added.days.keys() - days_before for kind in KINDS}
        self._valid_at = (cursor, self._valid_at[1])

    def find_next_unread(self, added: Additions, days: Collection[date]) -> UnreadIds | None:
        """Return what to read after a batch, the newest day first; None if nothing is left or it is not worth it."""
        is_full = any(one.segment_count >= SEGMENTS_MAX for one in self._filters.values())
        if is_full or added.size < self._batch_min:
            return None
        if self._reading is None:
            parts = [(day, kind) for day in days for kind in KINDS if (kind, day) not in self._complete]
            if parts:
                day, kind = max(parts)
                self._reading = UnreadIds(kind=kind, day=day, count_max=self._chunk_ids)
        return self._reading

    def add_read(self, part: UnreadIds, ids: Sequence[str], offers: Sequence[str] = ()) -> None:
        """Add ids that were read from the tables, in their order, and the names of offers that are not among them."""
        if part != self._reading:
            return  # The filter was cleared meanwhile.
        self._filters[part.kind].add([*ids, *offers], last_day=part.day)
        if len(ids) < part.count_max:
            self._complete.add((part.kind, part.day))
            self._reading = None
        else:
            self._reading = msgspec.structs.replace(part, after=ids[-1])

    def drop_before(self, day: date) -> None:
        self._complete = {(kind, one) for kind, one in self._complete if one >= day}
        if self._reading is not None and self._reading.day < day:
            self._reading = None
        for one in self._filters.values():
            one.drop_before(day)


class IdFilter:
    """Bloom filters in a row; one is dropped when all its ids are of days that are over.

    `hash` is seeded in every process, so nobody can choose ids that collide.
    """

    def __init__(self, segment_ids: int = SEGMENT_IDS) -> None:
        self._segment_ids = segment_ids
        self._segments: list[_Segment] = []

    @property
    def segment_count(self) -> int:
        """How many filters there are; each takes 1.6 bytes an id that it has room for."""
        return len(self._segments)

    def add(self, ids: Collection[str], *, last_day: date) -> None:
        """Add ids, none of a later day."""
        if not self._segments or self._segments[-1].size >= self._segments[-1].size_max:
            first = max(1, len(ids), self._segment_ids // FIRST_PART)
            size_max = self._segment_ids if self._segments else first
            self._segments.append(_Segment(Bloom(size_max, ERROR_RATE), last_day, size_max))
        segment = self._segments[-1]
        segment.ids.update(ids)
        segment.size += len(ids)
        segment.last_day = max(segment.last_day, last_day)

    def select(self, ids: Collection[str]) -> set[str]:
        """Return the ids that may be in the filter; the others certainly are not."""
        # Filter by filter: nearly all ids are in none, and asking in turns for each took three times as long.
        return {one for segment in self._segments for one in ids if one in segment.ids}

    def drop_before(self, day: date) -> None:
        self._segments = [segment for segment in self._segments if segment.last_day >= day]


class _Segment(msgspec.Struct):
    ids: Bloom
    last_day: date
    size_max: int
    size: int = 0
