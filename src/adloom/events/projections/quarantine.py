"""Applying a batch that may contain a bad entry: the bad entry is found and put aside, the others are applied.

An entry is bad when it cannot be decoded, when the store rejects it, or when the store fails over it for an
unknown reason. It is tried a few times before it is given up, because the reason may pass. A server that is
away says nothing about an entry: that is no try.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, UnreadableEntryError, decode_event
from adloom.events.ports import (
    BatchResult,
    CursorMovedError,
    DecodedEntry,
    LogConsumer,
    PoisonEntryError,
    ProjectionStore,
)
from adloom.events.projections.dead_letters import unwrap_redelivery, wrap_redelivery
from adloom.events.projections.recent_entries import RecentEntries

TRIES_MAX: Final = 5
# Between two tries, doubling: 0.3 s in all, in which the entries behind it wait.
TRY_AGAIN_SECONDS: Final = 0.02

log: structlog.stdlib.BoundLogger = structlog.get_logger()

# An entry and its decoded form; None if there is nothing to apply, but the cursor must pass.
Piece = tuple[LogEntry, DecodedEntry | None]


class ProjectionCounters:
    """What became of entries; plain counters, read by the metrics."""

    def __init__(self) -> None:
        self.counted = 0
        self.repeated = 0
        self.dropped = 0
        self.dead = 0
        self.batches = 0

    def add(self, result: BatchResult) -> None:
        self.batches += 1
        self.counted += result.counted
        self.repeated += result.repeated
        self.dropped += result.dropped


class BatchApplier:
    """Applies the batches of one projection."""

    def __init__(  # noqa: PLR0913 - what it stands between
        self,
        projection: str,
        consumer: LogConsumer,
        store: ProjectionStore,
        *,
        is_follower: bool,
        recent: RecentEntries | None = None,
        try_again_seconds: float = TRY_AGAIN_SECONDS,
    ) -> None:
        self._projection = projection
        self._consumer = consumer
        self._store = store
        self._is_follower = is_follower
        self._recent = recent or RecentEntries(kept_max=0)
        self._try_again_seconds = try_again_seconds
        self.counters = ProjectionCounters()

    async def apply(self, entries: Sequence[LogEntry], *, after: str) -> str:
        """Apply entries that follow the cursor `after`, and return the new cursor."""
        cursor = entries[-1].id
        try:
            records = self._recent.decode(entries)
        except Exception:  # noqa: BLE001 - whatever a reader may raise over what is no event
            await self._apply_readable(entries, after=after)
            return cursor
        try:
            self.counters.add(await self._store.commit(records, after=after, cursor=cursor))
        except (CursorMovedError, UnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, one of the entries may be why
            await self._commit_halves(list(zip(entries, records, strict=True)), after=after, error=error)
        return cursor

    async def _apply_readable(self, entries: Sequence[LogEntry], *, after: str) -> None:
        """Apply what can be decoded, and give the rest of the batch up together, so that they wait only once."""
        pieces: list[Piece] = []
        unreadable: list[tuple[LogEntry, Exception]] = []
        first = len(entries)
        for place, entry in enumerate(entries):
            try:
                pieces.append((entry, self._read(entry)))
            except Exception as error:  # noqa: BLE001 - as above
                pieces.append((entry, None))
                unreadable.append((entry, error))
                first = min(first, place)
        # An undecodable entry is not a follower's business: the projection that it follows has put it aside.
        if unreadable and not self._is_follower:
            if first > 0:
                await self._commit(pieces[:first], after=after)
                after, pieces = entries[first - 1].id, pieces[first:]
            await self._give_up_unreadable(unreadable)
        await self._commit(pieces, after=after)

    def _read(self, entry: LogEntry) -> DecodedEntry | None:
        try:
            return DecodedEntry(entry.id, decode_event(entry.data))
        except UnreadableEntryError:
            again = unwrap_redelivery(entry.data)
            if again is None:
                raise
        if again.projection != self._projection:
            return None
        return DecodedEntry(again.entry_id, decode_event(again.data))

    async def _give_up_unreadable(self, unreadable: Iterable[tuple[LogEntry, Exception]]) -> None:
        """Count tries as for any other bad entry: a worker of a newer version may make the next one."""
        waiting = list(unreadable)
        seconds = self._try_again_seconds
        while waiting:
            left: list[tuple[LogEntry, Exception]] = []
            for entry, error in waiting:
                tries = await self._consumer.count_try(entry.id)
                if tries < TRIES_MAX:
                    left.append((entry, error))
                else:
                    await self._give_up(entry, error, tries=tries)
            waiting = left
            if waiting:
                await asyncio.sleep(seconds)
                seconds *= 2

    async def _commit(self, pieces: Sequence[Piece], *, after: str) -> None:
        """Commit a part of a batch; if the store fails, search for the entry that is to blame."""
        records = [record for _, record in pieces if record is not None]
        try:
            self.counters.add(await self._store.commit(records, after=after, cursor=pieces[-1][0].id))
        except (CursorMovedError, UnavailableError):
            raise
        except Exception as error:
            if not records:
                raise
            await self._commit_halves(pieces, after=after, error=error)

    async def _commit_halves(self, pieces: Sequence[Piece], *, after: str, error: Exception) -> None:
        """Halve a batch that failed until the bad entry is alone; the order stays."""
        if len(pieces) == 1:
            await self._commit_alone(pieces[0], after=after, error=error)
            return
        half = len(pieces) // 2
        await self._commit(pieces[:half], after=after)
        await self._commit(pieces[half:], after=pieces[half - 1][0].id)

    async def _commit_alone(self, piece: Piece, *, after: str, error: Exception) -> None:
        entry, record = piece
        assert record is not None
        if not isinstance(error, PoisonEntryError):
            # If the store fails with no entry as well, the entry is not to blame: this raises.
            await self._store.commit([], after=after, cursor=after)
        seconds = self._try_again_seconds
        while (tries := await self._consumer.count_try(entry.id)) < TRIES_MAX:
            await asyncio.sleep(seconds)
            seconds *= 2
            try:
                self.counters.add(await self._store.commit([record], after=after, cursor=entry.id))
            except (CursorMovedError, UnavailableError):
                raise
            except Exception as again:  # noqa: BLE001 - as above
                error = again
            else:
                return
        await self._give_up(entry, error, tries=tries)
        await self._store.commit([], after=after, cursor=entry.id)

    async def _give_up(self, entry: LogEntry, error: Exception, *, tries: int) -> None:
        # Appended as it is, an entry that the tables have counted would be a repeated one to a follower.
        again = wrap_redelivery(entry, self._projection) if self._is_follower else entry.data
        reason = str(error) if isinstance(error, UnreadableEntryError | PoisonEntryError) else repr(error)
        await self._consumer.add_dead_letter(entry, reason=reason, tries=tries, again=again)
        self.counters.dead += 1
        log.error(
            "ledger_entry_buried", projection=self._projection, entry=entry.id, tries=tries, reason=reason
        )
