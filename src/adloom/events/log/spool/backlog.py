"""What waits on the disk: files of our own, written at one end and drained at the other, and adopted ones.

A file has a bound, and is removed when it is drained; that is how far a restart has to go back.
What is drained again is appended to the ledger again, and counted once all the same.
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
from adloom.events.log.spool.disk import SpoolDisk
from adloom.events.log.spool.names import DAMAGED, FileName, parsed
from adloom.events.log.spool.records import HEADER_BYTES, OtherVersionError, Taken, header
from adloom.events.log.spool.segment import Segment, bytes_of

BYTES_MAX: Final = 2**30
SEGMENT_BYTES_MAX: Final = 4 * 2**20  # About 20,000 events: what a restart may drain twice.

READ_TRIES_MAX: Final = 5

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Batch(msgspec.Struct, frozen=True):
    """The next events to drain, and where they are."""

    segment: Segment
    taken: Taken


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
        self._done: deque[Segment] = deque()
        self._writing: Segment | None = None
        self._is_putting = False
        # Not drained, of our own and of those before us.
        self.own_bytes = 0
        self.adopted_bytes = 0
        self.damaged = 0

    @property
    def waiting_bytes(self) -> int:
        """How much is not drained."""
        return self.own_bytes + self.adopted_bytes

    def has_room(self, *, share: float = 1.0) -> bool:
        """Tell whether less than a share of the bound is taken."""
        return self.waiting_bytes < self._bytes_max * share

    async def put(self, entries: Sequence[bytes]) -> None:
        """Put events behind all others, durably; UnavailableError if they are not, and then none of them is."""
        size = bytes_of(entries)
        if self.waiting_bytes + size > self._bytes_max:
            raise UnavailableError("The ledger does not answer, and its spool is full.")
        assert not self._is_putting
        self._is_putting = True
        try:
            segment = await self._segment_to_write()
            await segment.write(entries)
        except OSError as error:
            await self._seal()
            raise UnavailableError(
                f"The ledger does not answer, and its spool cannot be written: {error}"
            ) from error
        except BaseException:
            self._writing = None  # What became of it is not known: nothing may be written behind it.
            raise
        finally:
            self._is_putting = False
        self.own_bytes += size

    async def next_batch(self, count_max: int) -> Batch | None:
        """Give the next events, our own first; the same again until they are drained.

        OSError where the disk fails; a file that goes on failing is left to whoever looks next.
        """
        for queue in (self._own, self._adopted):
            while queue:
                segment = queue[0]
                if segment is self._writing and self._is_putting and not segment.waiting_bytes:
                    return None  # There will be more in it.
                if not segment.waiting_bytes:
                    self._retire(queue.popleft())
                    await self.tidy()
                    continue
                try:
                    return Batch(segment, await segment.next_entries(count_max))
                except (OSError, OtherVersionError) as error:
                    segment.failures += 1
                    is_busy = segment is self._writing and self._is_putting
                    if is_busy or (isinstance(error, OSError) and segment.failures < READ_TRIES_MAX):
                        raise
                    log.exception("spool_file_not_read", file=segment.file.name)
                    await self._give_up(queue)
        return None

    def drained(self, batch: Batch) -> None:
        """Go on behind events that the ledger has taken."""
        segment, taken = batch.segment, batch.taken
        before = segment.start
        damaged_before = segment.damaged
        segment.advance(taken)
        self._count(segment, before - segment.start)
        if segment.damaged > damaged_before:
            self.damaged += segment.damaged - damaged_before
            log.error(
                "spool_file_damaged", file=segment.file.name, before=segment.start, places=segment.damaged
            )
        elif taken.unreadable_bytes:
            log.info("spool_torn_record_dropped", file=segment.file.name, bytes=taken.unreadable_bytes)

    async def adopt(self, *, is_all: bool) -> None:
        """Take over what dead processes left: of our own name, or of all."""
        names = sorted(filter(None, map(parsed, await self._disk.names())))
        for (owner, _), files in groupby(names, key=lambda name: (name.owner, name.life)):
            if is_all or owner == self._owner:
                await self._adopt_life(list(files))

    async def tidy(self) -> None:
        """Remove what is drained; a file that could not be read whole is kept under another name."""
        for _ in range(len(self._done)):
            segment = self._done.popleft()
            try:
                if segment.damaged:
                    await segment.file.rename(f"{segment.file.name}{DAMAGED}")
                    await segment.file.release()
                else:
                    await segment.file.remove()
            except OSError:
                # We keep it, or it would be drained again and again.
                log.exception("spool_file_not_removed", file=segment.file.name)
                self._done.append(segment)

    async def release(self) -> None:
        """Let go of all files; whoever comes next drains them."""
        self._writing = None
        for queue in (self._own, self._adopted, self._done):
            while queue:
                with contextlib.suppress(OSError):
                    await queue.popleft().file.release()

    async def _segment_to_write(self) -> Segment:
        segment = self._writing
        if segment is None or segment.end >= self._segment_bytes_max:
            self._number += 1
            name = FileName(self._owner, self._life, self._number)
            file = await self._disk.create(str(name), header(self._life, self._number))
            segment = Segment(file, name, end=HEADER_BYTES, is_own=True)
            self._own.append(segment)
            self._writing = segment
        return segment

    async def _seal(self) -> None:
        """Write no more to a file that failed, and cut off what it may have taken."""
        segment, self._writing = self._writing, None
        if segment is None:
            return
        try:
            await segment.file.truncate(segment.end)
        except OSError:
            # Then it stays behind what we know, and is drained only if we die: as if it were sent again.
            log.warning("spool_file_not_truncated", file=segment.file.name)

    async def _adopt_life(self, names: Sequence[FileName]) -> None:
        """Take over one life's files in their order, or none: whoever has the first one has them all."""
        for name in names:
            file = await self._disk.claim(str(name))
            if file is None:
                return
            try:
                segment = Segment(file, name, end=await file.size(), is_own=False)
            except OSError:
                await file.release()
                raise
            self._adopted.append(segment)
            self.adopted_bytes += segment.waiting_bytes
            log.info("spool_file_adopted", file=str(name), bytes=segment.waiting_bytes)

    def _retire(self, segment: Segment) -> None:
        if segment is self._writing:
            self._writing = None
        self._done.append(segment)

    async def _give_up(self, queue: deque[Segment]) -> None:
        """Leave a file that cannot be read now to whoever looks next: ourselves, perhaps."""
        segment = queue.popleft()
        if segment is self._writing:
            self._writing = None
        self._count(segment, -segment.waiting_bytes)
        await segment.file.release()

    def _count(self, segment: Segment, added: int) -> None:
        if segment.is_own:
            self.own_bytes += added
        else:
            self.adopted_bytes += added
