"""What was read of entries lately: the projections of a worker fold the same ones, each a little after the other."""

from collections.abc import Iterable
from typing import Final

from adloom.ledger.event import decoded
from adloom.ledger.ports import Record
from adloom.ledger.stream import Entry

KEPT_MAX: Final = 40_000  # Two of the largest batches: 24 MB of impressions.


class Readings:
    """Reads each entry once for all who share this; what was read longest ago is forgotten by halves."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        self._half_max = max(1, kept_max // 2)
        self._newer: dict[str, tuple[bytes, Record]] = {}
        self._older: dict[str, tuple[bytes, Record]] = {}
        # A plain counter, read by a collector.
        self.read = 0

    def records(self, entries: Iterable[Entry]) -> list[Record]:
        """Read entries; whatever the reader raises over one that is no event leaves this."""
        newer, older, found = self._newer, self._older, list[Record]()
        for entry in entries:
            entry_id, data = entry.id, entry.data
            known = newer.get(entry_id) or older.get(entry_id)
            # An id that was lost with the stream's end may be given again, to something else.
            if known is None or known[0] != data:
                self.read += 1
                known = newer[entry_id] = data, Record(entry_id, decoded(data))
            found.append(known[1])
        if len(newer) >= self._half_max:
            self._newer, self._older = {}, newer
        return found
