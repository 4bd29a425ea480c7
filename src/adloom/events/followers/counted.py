"""Which entries the event tables have counted, and with which marks.

A projection that follows the tables does not decide again: of the entries with one correlation id, the one
that the row was made from counts, and the row's marks and validity hold.
"""

# pure

from collections.abc import Iterable, Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec

from adloom.events.log.event import BEGINNING, LogEvent, parse_entry_id
from adloom.events.ports import DecodedEntry

KEPT_MAX: Final = 40_000  # As many as there are recent entries, whose events these are: 6 MB.
KEPT_SECONDS: Final = 4.0  # Likewise, and up to twice as long.


class CountedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry that counted; the user is None where none was given, or was erased since."""

    entry_id: str
    event: LogEvent
    user_id: UUID | None
    marks: tuple[str, ...] = ()
    is_valid: bool = True


class CountedLookup(Protocol):
    """Finds out which entries counted."""

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        """Return the entries that counted, in their order; UnavailableError when that is not known."""
        ...


class RecentCounted:
    """The newest impressions that counted, without gaps, as the writer of the event tables knows them.

    They save the followers in the same process a look-up of every entry. Only impressions are kept, because
    nothing but an erasure changes their rows; a click may become valid later. The oldest go by halves, when there are
    many or they were added a while ago.
    """

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        self._half_max = max(1, kept_max // 2)
        self._newer: dict[str, CountedEntry] = {}
        self._older: dict[str, CountedEntry] = {}
        # Of all entries after the first and up to the last of these it is known whether they counted.
        self._older_after = self._newer_after = self._until = BEGINNING
        self._turned_at = 0.0  # When those that were new became older.

    def add_batch(
        self, after: str, cursor: str, impressions: Iterable[CountedEntry], *, at: float = 0.0
    ) -> None:
        """Add what a batch has written to the tables, once that is committed; `at` is of any steady clock."""
        if after != self._until:  # Another worker has written meanwhile, or we do not know what we have.
            self._newer, self._older = {}, {}
            self._older_after = self._newer_after = after
        self._newer |= {one.entry_id: one for one in impressions}
        self._until = cursor
        if len(self._newer) >= self._half_max or at - self._turned_at >= KEPT_SECONDS:
            self._turned_at = at
            self._newer, self._older = {}, self._newer
            self._older_after, self._newer_after = self._newer_after, cursor

    def get(self, entry_id: str) -> CountedEntry | None:
        return self._newer.get(entry_id) or self._older.get(entry_id)

    def covers(self, entry_id: str) -> bool:
        """Return whether an impression would be here if it had counted."""
        return parse_entry_id(self._older_after) < parse_entry_id(entry_id) <= parse_entry_id(self._until)
