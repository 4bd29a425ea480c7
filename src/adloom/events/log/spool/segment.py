"""One file of the spool that we hold: written at its end, drained from its beginning."""

from collections.abc import Sequence

import msgspec

from adloom.events.log.spool.disk import SpoolFile
from adloom.events.log.spool.names import FileName
from adloom.events.log.spool.records import (
    HEADER_BYTES,
    RECORD_BYTES,
    Taken,
    header,
    is_whole_header,
    records,
    seed_of,
    taken,
)


class Segment:
    """How far a file is written and drained.

    Of one that we write we know where what was acknowledged ends, and everything before that must be
    readable. One that a dead process left may end in the middle of what it was writing.
    """

    def __init__(self, file: SpoolFile, name: FileName, *, end: int, is_own: bool) -> None:
        self.file = file
        self.start = HEADER_BYTES
        self.end = max(end, HEADER_BYTES)
        self.is_own = is_own
        self.damaged = 0
        self.failures = 0
        self._head = header(name.life, name.number)
        self._seed = seed_of(self._head) if is_own else None
        self._has_damaged_header = False
        self._read = b""
        self._read_from = HEADER_BYTES

    @property
    def waiting_bytes(self) -> int:
        """How much of it is not yet drained."""
        return self.end - self.start

    async def write(self, entries: Sequence[bytes]) -> None:
        """Put events at the end; they are durable then."""
        assert self._seed is not None, "only our own files are written"
        data = records(entries, self._seed)
        await self.file.write(self.end, data)
        self.end += len(data)

    async def next_entries(self, count_max: int) -> Taken:
        """Read the next events that are not drained; the same again until `advance`."""
        if self._seed is None:
            self._seed = await self._seed_in_header()
        if self.start >= self._read_from + len(self._read):
            self._read = await self.file.read(self.start, self.end)
            self._read_from = self.start
        if not self._read:  # Somebody has cut it off.
            return Taken(entries=[], end=self.end, unreadable_bytes=self.waiting_bytes)
        found = taken(self._read, self.start - self._read_from, self._seed, count_max=count_max)
        is_first = self.start == HEADER_BYTES
        return msgspec.structs.replace(
            found,
            end=self._read_from + found.end,
            damaged=found.damaged + (is_first and self._has_damaged_header),
        )

    def advance(self, drained: Taken) -> None:
        """Go on behind what the ledger has taken."""
        self.start = drained.end
        self.damaged += drained.damaged
        if drained.unreadable_bytes and self.is_own:
            self.damaged += 1

    async def _seed_in_header(self) -> int:
        """Read the header; where it cannot be read, the file's name says the same."""
        head = await self.file.read(0, HEADER_BYTES)
        self._has_damaged_header = not is_whole_header(head)
        return seed_of(self._head if self._has_damaged_header else head)


def bytes_of(entries: Sequence[bytes]) -> int:
    """Tell how much room events take in a file."""
    return sum(map(len, entries)) + RECORD_BYTES * len(entries)
