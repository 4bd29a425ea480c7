"""A projection: takes the ledger's entries as the owner of a consumer group, and folds them into a store.

The store moves the cursor in the transaction that writes the batch. So whatever stops us, and
wherever, we go on from the last batch that is whole, and a batch that comes twice changes nothing.
The group knows what was handed out to whom, and how often an entry was tried; the lease keeps two
workers from doing the same work. Neither is trusted: the cursor alone says what is folded.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Final

import structlog

from adloom.core.errors import UnavailableError
from adloom.events.ports import (
    BatchResult,
    CursorMovedError,
    DecodedEntry,
    LogConsumer,
    PoisonEntryError,
    ProjectionStore,
)
from adloom.events.projections.quarantine import TRY_AGAIN_SECONDS, BatchApplier
from adloom.events.projections.recent_entries import RecentEntries

# The words of a projection are found here, wherever they had to be put.
__all__ = (
    "BatchResult",
    "CursorMovedError",
    "CursorSignal",
    "DecodedEntry",
    "LogConsumer",
    "PoisonEntryError",
    "Projection",
    "ProjectionStore",
)

# While an owner is behind: each batch waits for the disk once. Of 2,000 a sixth fewer a second were charged on a busy one.
BATCH_MAX: Final = 5_000
# Batches begin no closer than this: alone, an event is folded at once; under load, batches are large. An
# event in a batch of 50 takes four times the CPU of one in a batch of 1,000. Followers go at the same pace by themselves.
PACE_SECONDS: Final = 0.2
WAIT_SECONDS: Final = 4.0  # For the first new entry; a connection gives up after five.
RENEW_SECONDS: Final = 1.5  # How often an owner says that it lives: thrice while its lease lasts.
STANDBY_SECONDS: Final = 1.0  # How often a worker that is not the owner looks whether it may be.
FOLLOW_SECONDS: Final = 0.1  # How often a follower asks where the other is, if that is in another process.
BACKOFF_SECONDS_MIN: Final = 0.1
BACKOFF_SECONDS_MAX: Final = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class CursorSignal:
    """Tells whoever waits for it in this process that a cursor has moved."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    @property
    def next_move(self) -> asyncio.Event:
        """What is set at the next move; take it before looking at the cursor, and none is missed."""
        return self._next

    def notify(self) -> None:
        """Wake all who wait."""
        self._next.set()
        self._next = asyncio.Event()


class Projection:
    """Keeps one store up with the ledger, never beyond the one that it follows."""

    def __init__(  # noqa: PLR0913 - each wait is another's business in a simulation
        self,
        name: str,
        ledger: LogConsumer,
        store: ProjectionStore,
        *,
        follows: "Projection | None" = None,
        recent: RecentEntries | None = None,
        batch_max: int = BATCH_MAX,
        pace_seconds: float = PACE_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        standby_seconds: float = STANDBY_SECONDS,
        try_again_seconds: float = TRY_AGAIN_SECONDS,
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._store = store
        self._follows = follows
        self._batch_max = batch_max
        self._pace_seconds = pace_seconds if follows is None else 0.0
        self._wait_seconds = wait_seconds
        self._renew_seconds = renew_seconds
        self._standby_seconds = standby_seconds
        self._applier = BatchApplier(
            name,
            ledger,
            store,
            is_follower=follows is not None,
            recent=recent,
            try_again_seconds=try_again_seconds,
        )
        self._cursor: str | None = None  # As we have left it; None where somebody else may have moved it.
        self._nap: asyncio.Timeout | None = None
        self.counters = self._applier.counters
        self.cursor_moved = CursorSignal()
        self.is_owner = False
        self.failures = 0

    async def read_cursor(self) -> str:
        """Tell how far it is at least, whoever folds; UnavailableError when that cannot be told."""
        if self.is_owner and self._cursor is not None:
            return self._cursor
        return await self._store.read_cursor()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the ledger until told to stop; a batch that was begun is finished."""
        async with asyncio.TaskGroup() as group:
            attending = group.create_task(self._renew_lease(stop))
            await self._follow_log(stop)
            attending.cancel()
        await self._release()

    async def _renew_lease(self, stop: asyncio.Event) -> None:
        """Renew the lease however long a batch takes, and end a nap when it is time to stop."""
        while not stop.is_set():
            await _pause(self._renew_seconds, stop)
            if self.is_owner:
                with contextlib.suppress(UnavailableError):
                    self.is_owner = await self._ledger.acquire()
        if self._nap is not None and not self._nap.expired():
            self._nap.reschedule(asyncio.get_running_loop().time())

    async def _follow_log(self, stop: asyncio.Event) -> None:
        failures_in_a_row = 0
        while not stop.is_set():
            try:
                if not self.is_owner:
                    self._cursor = None
                    self.is_owner = await self._ledger.acquire()
                if not self.is_owner:
                    await _pause(self._standby_seconds, stop)
                    continue
                cursor = self._cursor or await self._store.read_cursor()
                self._cursor = await self._advance(cursor, stop)
                failures_in_a_row = 0
            except CursorMovedError:
                log.warning("projection_cursor_moved_by_another", projection=self.name)
                self._cursor = None
            except Exception as error:  # noqa: BLE001 - the outermost loop: whatever it is may pass
                # What we know of the cursor is void: the batch may be in, with its answer lost.
                self._cursor = None
                failures_in_a_row += 1
                self.failures += 1
                seconds = _backoff_seconds(failures_in_a_row)
                self._log_failure(error, retry_in_seconds=seconds)
                # It may be we who cannot reach the store: another may try meanwhile.
                await self._release()
                await _pause(seconds, stop)

    async def _advance(self, cursor: str, stop: asyncio.Event) -> str:
        """Fold the next batch, or wait for it; tell where the cursor is then."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        moved = until = None
        if self._follows is not None:
            moved = self._follows.cursor_moved.next_move
            until = await self._follows.read_cursor()
        entries = await self._ledger.read(cursor, until=until, count_max=self._batch_max)
        if entries is None:
            self.is_owner = False
            return cursor
        if entries:
            cursor = await self._applier.apply(entries, after=cursor)
            self._cursor = cursor
            self.cursor_moved.notify()
            if len(entries) < self._batch_max:
                await _pause(began_at + self._pace_seconds - loop.time(), stop)
            return cursor
        await self._wait_for(self._ledger.wait(cursor, seconds=self._wait_seconds), None, stop)
        if moved is not None:
            await self._wait_for(moved.wait(), FOLLOW_SECONDS, stop)
        return cursor

    async def _wait_for(self, sign: Awaitable[object], seconds: float | None, stop: asyncio.Event) -> None:
        """Wait for a sign, but not for too long and not beyond a stop."""
        try:
            async with asyncio.timeout(0 if stop.is_set() else seconds) as self._nap:
                await sign
        except TimeoutError:
            pass
        finally:
            self._nap = None

    async def _release(self) -> None:
        self.is_owner = False
        self._cursor = None
        with contextlib.suppress(UnavailableError):
            await self._ledger.release()

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
