"""What waits on the disk: files of our own, written at one end and drained at the other, and adopted ones.

A file has a bound, and is removed when it is drained; that is how far a restart goes back. What is drained again is
appended to the log again, and counted once all the same.
"""

import contextlib
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.events.log.spool.disk import SpoolDisk, SpoolFile
from adloom.events.log.spool.format import (
    DAMAGED,
    HEADER_BYTES,
    OtherVersionError,
    ReadRecords,
    SpoolFileName,
    build_header,
    encode_records,
    is_whole_header,
    measure_entries,
    parse_name,
    read_records,
    read_seed,
)

BYTES_MAX: Final = 2**30
SEGMENT_BYTES_MAX: Final = 4 * 2**20  # About 20,000 events: what a restart may drain twice.
READ_TRIES_MAX: Final = 5

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Segment:
    """One file, and how far it is written and drained.

    In a file of our own we know where the confirmed entries end, and all of them must be readable. One that a dead
    process left may end in the middle of a write.
    """

    def __init__(self, file: SpoolFile, name: SpoolFileName, *, end: int, is_own: bool) -> None:
        self.file = file
        self.start = HEADER_BYTES
        self.end = max(end, HEADER_BYTES)
        self.damaged = 0
        self.failures = 0
        self._is_own = is_own
        self._head = build_header(name.life, name.number)
        self._seed = read_seed(self._head) if is_own else None
        self._has_damaged_header = False
        self._read = b""
        self._read_from = HEADER_BYTES

    @property
    def waiting_bytes(self) -> int:
        return self.end - self.start

    async def write(self, entries: Sequence[bytes]) -> None:
        assert self._seed is not None, "only our own files are written"
        data = encode_records(entries, self._seed)
        await self.file.write(self.end, data)
        self.end += len(data)

    async def read_entries(self, count_max: int) -> ReadRecords:
        """Return the next entries; the same again until `advance`."""
        if self._seed is None:
            self._seed = await self._find_seed()
        if self.start >= self._read_from + len(self._read):
            self._read = await self.file.read(self.start, self.end)
            self._read_from = self.start
        if not self._read:  # The file was cut off by someone else.
            return ReadRecords(entries=[], end=self.end, unreadable_bytes=self.waiting_bytes)
        found = read_records(self._read, self.start - self._read_from, self._seed, count_max=count_max)
        is_first = self.start == HEADER_BYTES
        return msgspec.structs.replace(
            found,
            end=self._read_from + found.end,
            damaged=found.damaged + (is_first and self._has_damaged_header),
        )

    def advance(self, drained: ReadRecords) -> int:
        self.start = drained.end
        damaged = drained.damaged + (self._is_own and drained.unreadable_bytes > 0)
        self.damaged += damaged
        return damaged

    async def _find_seed(self) -> int:
        """Read the header; the file's name says the same as one that is damaged."""
        head = await self.file.read(0, HEADER_BYTES)
        self._has_damaged_header = not is_whole_header(head)
        return read_seed(self._head if self._has_damaged_header else head)


class SpooledBatch(msgspec.Struct, frozen=True):
    """The next entries to drain, and where they are."""

    segment: Segment
    found: ReadRecords


class Backlog:
    """The files that this process holds; one caller puts, one drains."""

    def __init__(
        self,
        disk: SpoolDisk,
        *,
        owner: str,
        life: UUID,
        bytes_max: int = BYTES_MAX,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> None:
        self._disk = disk
        self._owner = owner
        self._life = life
        self._bytes_max = bytes_max
        self._segment_bytes_max = segment_bytes_max
        self._number = 0
        self._own: deque[Segment] = deque()
        self._adopted: deque[Segment] = deque()
        self._drained: deque[Segment] = deque()
        self._writing: Segment | None = None
        self._is_putting = False
        self.damaged = 0

    @property
    def own_bytes(self) -> int:
        return sum(segment.waiting_bytes for segment in self._own)

    @property
    def adopted_bytes(self) -> int:
        return sum(segment.waiting_bytes for segment in self._adopted)

    @property
    def waiting_bytes(self) -> int:
        return self.own_bytes + self.adopted_bytes

    def has_room(self, *, share: float = 1.0) -> bool:
        """Return whether less than a share of the bound is taken."""
        return self.waiting_bytes < self._bytes_max * share

    async def put(self, entries: Sequence[bytes]) -> None:
        """Put entries behind all others, durably; UnavailableError if none of them was."""
        if self.waiting_bytes + measure_entries(entries) > self._bytes_max:
            raise UnavailableError("The event log does not answer, and the spool is full.")
        assert not self._is_putting
        self._is_putting = True
        try:
            segment = await self._open_segment()
            await segment.write(entries)
        except OSError as error:
            await self._seal()
            raise UnavailableError(
                f"The event log does not answer, and its spool cannot be written: {error}"
            ) from error
        except BaseException:
            self._writing = None  # How much of it was written is not known: nothing may follow it.
            raise
        finally:
            self._is_putting = False

    async def read_batch(self, count_max: int) -> SpooledBatch | None:
        """Return the next entries, our own first; the same again until `advance`.

        OSError where the disk fails; a file that goes on failing is left to the next poll.
        """
        for queue in (self._own, self._adopted):
            while queue:
                segment = queue[0]
                is_busy = segment is self._writing and self._is_putting
                if not segment.waiting_bytes:
                    if is_busy:
                        return None  # There will be more in it.
                    self._drained.append(self._take_first(queue))
                    await self.tidy()
                    continue
                try:
                    return SpooledBatch(segment, await segment.read_entries(count_max))
                except (OSError, OtherVersionError) as error:
                    segment.failures += 1
                    is_busy = segment is self._writing and self._is_putting
                    if is_busy or (isinstance(error, OSError) and segment.failures < READ_TRIES_MAX):
                        raise
                    log.exception("spool_file_not_read", file=segment.file.name)
                    # The next poll, which may be ours, tries it again.
                    await self._take_first(queue).file.release()
        return None

    def advance(self, batch: SpooledBatch) -> None:
        segment, found = batch.segment, batch.found
        damaged = segment.advance(found)
        self.damaged += damaged
        name = segment.file.name
        if damaged:
            log.error("spool_file_damaged", file=name, before=segment.start, places=segment.damaged)
        elif found.unreadable_bytes:
            log.info("spool_torn_record_dropped", file=name, bytes=found.unreadable_bytes)

    async def adopt(self, *, is_all: bool) -> None:
        """Take over what dead processes left: those of our own name, or all."""
        names = sorted(filter(None, map(parse_name, await self._disk.list_names())))
        for (owner, _), files in groupby(names, key=lambda name: (name.owner, name.life)):
            if is_all or owner == self._owner:
                await self._adopt_life(list(files))

    async def tidy(self) -> None:
        """Remove what is drained; a file that could not be read whole is kept under another name."""
        for _ in range(len(self._drained)):
            segment = self._drained.popleft()
            try:
                if segment.damaged:
                    await segment.file.rename(f"{segment.file.name}{DAMAGED}")
                    await segment.file.release()
                else:
                    await segment.file.remove()
            except OSError:
                # We hold it, or it would be drained again and again.
                log.exception("spool_file_not_removed", file=segment.file.name)
                self._drained.append(segment)

    async def release(self) -> None:
        self._writing = None
        for queue in (self._own, self._adopted, self._drained):
            while queue:
                with contextlib.suppress(OSError):
                    await queue.popleft().file.release()

    async def _open_segment(self) -> Segment:
        segment = self._writing
        if segment is None or segment.end >= self._segment_bytes_max:
            self._number += 1
            name = SpoolFileName(self._owner, self._life, self._number)
            file = await self._disk.create(str(name), build_header(self._life, self._number))
            self._writing = segment = Segment(file, name, end=HEADER_BYTES, is_own=True)
            self._own.append(segment)
        return segment

    async def _seal(self) -> None:
        """Write no more to a file that failed, and cut off what it may have taken."""
        segment, self._writing = self._writing, None
        if segment is None:
            return
        try:
            await segment.file.truncate(segment.end)
        except OSError:
            # It stays behind the end that we know, and is drained only if we die: as if it were sent again.
            log.warning("spool_file_not_truncated", file=segment.file.name)

    async def _adopt_life(self, names: Sequence[SpoolFileName]) -> None:
        """Take over one life's files in their order, or none: the process that has the first has them all."""
        for name in names:
            file = await self._disk.claim(str(name))
            if file is None:
                return
            try:
                segment = Segment(file, name, end=await file.measure(), is_own=False)
            except OSError:
                await file.release()
                raise
            self._adopted.append(segment)
            log.info("spool_file_adopted", file=str(name), bytes=segment.waiting_bytes)

    def _take_first(self, queue: deque[Segment]) -> Segment:
        segment = queue.popleft()
        if segment is self._writing:
            self._writing = None
        return segment
