"""A projection: reads the ledger from its cursor, and folds it batch by batch into a store.

The store moves the cursor in the transaction that writes the batch. So whatever stops us, and
wherever, we go on from the last batch that is whole, and a batch that comes twice changes nothing.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.ledger.event import Event, UnreadableEntryError, decoded
from adloom.ledger.stream import Entry

BATCH_MAX: Final = 2_000
WAIT_SECONDS: Final = 1.0  # For the first new entry; also how long a stop waits where there is none.
BACKOFF_SECONDS_MIN: Final = 0.1
BACKOFF_SECONDS_MAX: Final = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Folded(msgspec.Struct, frozen=True):
    """What became of the events of a batch."""

    counted: int = 0
    repeated: int = 0  # Their correlation id was there already.
    dropped: int = 0  # Their banner or placement is gone from the catalog.


class CursorMovedError(Exception):
    """Somebody else has moved the cursor: a worker that was thought dead, or a second one."""


class UnfoldableError(Exception):
    """The store will never take one of these events, however often it is asked."""


class LedgerReader(Protocol):
    """Where the entries come from."""

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> Sequence[Entry]:
        """Read entries after a cursor, and wait a little for the first; UnavailableError when away."""
        ...

    async def bury(self, entry: Entry, *, reason: str) -> None:
        """Lay an entry aside that nobody can read; UnavailableError when away."""
        ...


class ProjectionStore(Protocol):
    """Where the events go, with the cursor."""

    async def cursor(self) -> str:
        """Tell the last entry that was folded; UnavailableError when away."""
        ...

    async def commit(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        """Fold the events and move the cursor from `after` to `cursor`, both or neither.

        Raises CursorMovedError when it is not at `after`, UnfoldableError for an event that can
        never be taken, and UnavailableError when it is not known whether the batch is in.
        """
        ...


class Projection:
    """Keeps one store up with the ledger."""

    def __init__(
        self,
        name: str,
        ledger: LedgerReader,
        store: ProjectionStore,
        *,
        batch_max: int = BATCH_MAX,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._store = store
        self._batch_max = batch_max
        self._wait_seconds = wait_seconds
        # Buried, but the cursor is not past them yet: a retry must not bury them again.
        self._buried: set[str] = set()
        # Plain counters, read by a collector.
        self.counted = 0
        self.repeated = 0
        self.dropped = 0
        self.dead = 0
        self.batches = 0
        self.failures = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the ledger until told to stop; a batch that was begun is finished."""
        cursor: str | None = None
        failures_in_a_row = 0
        while not stop.is_set():
            try:
                if cursor is None:
                    cursor = await self._store.cursor()
                cursor = await self._advance(cursor)
                failures_in_a_row = 0
            except CursorMovedError:
                log.warning("projection_cursor_moved_by_another", projection=self.name)
                cursor = None
            except Exception as error:  # noqa: BLE001 - the outermost loop: whatever it is may pass
                # What we know of the cursor is void: the batch may be in, with its answer lost.
                cursor = None
                failures_in_a_row += 1
                self.failures += 1
                seconds = _backoff_seconds(failures_in_a_row)
                self._log_failure(error, retry_in_seconds=seconds)
                await _pause(seconds, stop)

    async def _advance(self, cursor: str) -> str:
        entries = await self._ledger.read(cursor, count_max=self._batch_max, wait_seconds=self._wait_seconds)
        if not entries:
            return cursor
        batch = [(entry, event) for entry in entries if (event := await self._readable(entry))]
        end = await self._fold(batch, after=cursor, cursor=entries[-1].id)
        self._buried.clear()
        return end

    async def _readable(self, entry: Entry) -> Event | None:
        try:
            return decoded(entry.data)
        except UnreadableEntryError as error:
            await self._bury(entry, reason=str(error))
            return None

    async def _fold(self, batch: Sequence[tuple[Entry, Event]], *, after: str, cursor: str) -> str:
        """Commit a batch; where the store refuses it, halve it until the one that it refuses is alone."""
        try:
            folded = await self._store.commit([event for _, event in batch], after=after, cursor=cursor)
        except UnfoldableError as error:
            if len(batch) > 1:
                half = len(batch) // 2
                middle = batch[half - 1][0].id
                await self._fold(batch[:half], after=after, cursor=middle)
                return await self._fold(batch[half:], after=middle, cursor=cursor)
            [(entry, _)] = batch
            await self._bury(entry, reason=str(error))
            return await self._fold([], after=after, cursor=cursor)
        self.batches += 1
        self.counted += folded.counted
        self.repeated += folded.repeated
        self.dropped += folded.dropped
        return cursor

    async def _bury(self, entry: Entry, *, reason: str) -> None:
        if entry.id in self._buried:
            return
        await self._ledger.bury(entry, reason=reason)
        self._buried.add(entry.id)
        self.dead += 1
        log.error("ledger_entry_buried", projection=self.name, entry=entry.id, reason=reason)

    def _log_failure(self, error: Exception, *, retry_in_seconds: float) -> None:
        if isinstance(error, UnavailableError):
            log.warning(
                "projection_waits",
                projection=self.name,
                reason=error.detail,
                retry_in_seconds=retry_in_seconds,
            )
        else:
            log.error(
                "projection_failed", projection=self.name, exc_info=error, retry_in_seconds=retry_in_seconds
            )


def _backoff_seconds(failures_in_a_row: int) -> float:
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2 ** min(failures_in_a_row - 1, 10))


async def _pause(seconds: float, stop: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
