"""What the event tables made of the newest impressions, as whoever has written them knows it.

Those who follow the tables in the same process would otherwise look every entry up, each for himself. Only
impressions are remembered, since nothing but an erasure ever changes their rows; a click may become valid later.
"""

from collections.abc import Iterable
from typing import Final

from adloom.events.followers.counted import CountedEntry
from adloom.events.log.entry import BEGINNING, parse_entry_id

KEPT_MAX: Final = 40_000  # As many as the tail has entries, whose events these are: 6 MB.


class RecentCounted:
    """Impressions that counted, of entries without a gap; those that came first are forgotten by halves."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        self._half_max = max(1, kept_max // 2)
        self._newer: dict[str, CountedEntry] = {}
        self._older: dict[str, CountedEntry] = {}
        # All of these entries are known, which counted and which did not: behind the first, and up to the last.
        self._older_after = self._newer_after = self._until = BEGINNING

    def add_batch(self, after: str, cursor: str, impressions: Iterable[CountedEntry]) -> None:
        """Take in what a batch has added to the tables, once that is committed."""
        if after != self._until:  # Somebody else has written meanwhile, or we do not know what we have.
            self._newer, self._older = {}, {}
            self._older_after = self._newer_after = after
        self._newer.update((one.entry_id, one) for one in impressions)
        self._until = cursor
        if len(self._newer) >= self._half_max:
            self._newer, self._older = {}, self._newer
            self._older_after, self._newer_after = self._newer_after, cursor

    def get(self, entry_id: str) -> CountedEntry | None:
        """Give an impression that is known to have counted."""
        return self._newer.get(entry_id) or self._older.get(entry_id)

    def covers(self, entry_id: str) -> bool:
        """Tell whether an impression would be known if it had counted."""
        return parse_entry_id(self._older_after) < parse_entry_id(entry_id) <= parse_entry_id(self._until)
