"""A projection: reads the event log as the owner of a consumer group, and applies it to a store.

The store moves the cursor in the transaction that writes the batch. So wherever we stop, we go on from the
last complete batch, and a batch that comes twice changes nothing. The group knows what was handed out, and how
often an entry was tried; the lock keeps two workers from doing the same work. Neither is trusted: only the
cursor says what is applied.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Final

import structlog

from adloom.core.errors import UnavailableError
from adloom.events.ports import (
    CursorMovedError,
    LogConsumer,
    ProjectionStore,
)
from adloom.events.projections.quarantine import TRY_AGAIN_SECONDS, BatchApplier
from adloom.events.projections.recent_entries import RecentEntries
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine, pause, pause_until_next

# Each batch waits for the disk once. With 2,000, a busy installation charged a sixth fewer events a second.
BATCH_MAX: Final = 5_000
# The least time between batches: a lone event is applied at once; under load, batches are large. An event in a
# batch of 50 takes four times the CPU of one in a batch of 1,000. Followers keep the same pace by themselves.
PACE_SECONDS: Final = 0.2
# Under load they come less often still: at 5,000 events a second, with 2,500 instead of 1,000 in a batch, the worker
# and PostgreSQL need a fifth less CPU for each. From so many on a batch is large, also at the slower pace: so the pace
# changes at 2,500 events a second, and back at 1,000.
LARGE_BATCH_MIN: Final = 500
LARGE_PACE_SECONDS: Final = 0.5
# A few events at a time at that pace would keep an idle machine busy. After some small batches in a row the pause is
# a second, and longer for projections that nothing waits for.
SMALL_BATCH_MAX: Final = 50  # Entries in a second.
SMALL_PACE_SECONDS: Final = 1.0
SMALL_BATCHES_IN_A_ROW: Final = 5
WAIT_SECONDS: Final = 4.0  # For the first new entry; a connection gives up after five.
RENEW_SECONDS: Final = 2.0  # How often an owner renews its lock: twice while the lock lasts.
STANDBY_SECONDS: Final = 1.0  # How often a worker without the lock tries to take it.
FOLLOW_SECONDS: Final = 0.1  # How often a follower asks for a cursor that another process moves.
# How long a follower waits for a notice that this process has moved the cursor, before it reads the log itself; as a
# multiple of the wait for an entry. It gets one too when another process begins to move it.
FOLLOW_TOLD_WAITS: Final = 5
BACKOFF_SECONDS_MIN: Final = 0.1
BACKOFF_SECONDS_MAX: Final = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class CursorSignal:
    """Wakes those in this process that wait for a cursor to move."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    @property
    def next_move(self) -> asyncio.Event:
        """The event of the next move; take it before reading the cursor, and no move is missed."""
        return self._next

    def notify(self) -> None:
        self._next.set()
        self._next = asyncio.Event()


class BatchPace:
    """Says how long to wait between batches: large ones come less often, and small ones after the first few."""

    def __init__(self, seconds: float, *, small_seconds: float = SMALL_PACE_SECONDS) -> None:
        self._seconds = seconds
        self._large = max(LARGE_PACE_SECONDS, seconds) if seconds else 0.0
        self._small = small_seconds
        self._due_at = 0.0  # When the small batches so far would have come at their pace: a leaky bucket.

    def find_pause(self, entries: int, now: float) -> float:
        """Return the least seconds from the begin of a batch to that of the next."""
        if entries >= LARGE_BATCH_MIN:
            return self._large
        if entries > SMALL_BATCH_MAX * self._small:
            return self._seconds
        self._due_at = max(self._due_at, now) + self._small
        return max(self._seconds, self._due_at - SMALL_BATCHES_IN_A_ROW * self._small - now)


class Projection:
    """Applies the log to one store, never beyond the projection that it follows."""

    def __init__(  # noqa: PLR0913 - a simulation sets each waiting time by itself
        self,
        name: str,
        consumer: LogConsumer,
        store: ProjectionStore,
        *,
        follows: "Projection | None" = None,
        recent: RecentEntries | None = None,
        batch_max: int = BATCH_MAX,
        pace_seconds: float = PACE_SECONDS,
        small_seconds: float | None = None,
        wait_seconds: float = WAIT_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        standby_seconds: float = STANDBY_SECONDS,
        try_again_seconds: float = TRY_AGAIN_SECONDS,
    ) -> None:
        self.name = name
        self._consumer = consumer
        self._store = store
        self._follows = follows
        self._batch_max = batch_max
        # Followers keep the pace of the one that they follow, unless they may be later.
        paces = follows is None and pace_seconds > 0
        small_seconds = (SMALL_PACE_SECONDS if paces else 0.0) if small_seconds is None else small_seconds
        self._pace = BatchPace(pace_seconds if paces else 0.0, small_seconds=small_seconds)
        self._wait_seconds = wait_seconds
        self._renew_seconds = renew_seconds
        self._standby_seconds = standby_seconds
        self._applier = BatchApplier(
            name,
            consumer,
            store,
            is_follower=follows is not None,
            recent=recent,
            try_again_seconds=try_again_seconds,
        )
        self._cursor: str | None = None  # As we have left it; None if another worker may have moved it.
        self._nap: asyncio.Timeout | None = None
        self._log_waiting = RepeatedLine(log, "projection_waits", seconds=OUTAGE_SECONDS)
        self.counters = self._applier.counters
        self.cursor_moved = CursorSignal()
        self.is_owner = False
        self.failures = 0

    async def read_cursor(self) -> str:
        """Return how far it is at least, whichever worker applies; UnavailableError when that is not known."""
        if self.is_owner and self._cursor is not None:
            return self._cursor
        return await self._store.read_cursor()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the log until `stop`; a batch that was begun is finished."""
        async with asyncio.TaskGroup() as group:
            attending = group.create_task(self._renew_lock(stop))
            await self._follow_log(stop)
            attending.cancel()
        await self._release()

    async def _renew_lock(self, stop: asyncio.Event) -> None:
        """Renew the lock however long a batch takes, and end a wait when it is time to stop."""
        while not stop.is_set():
            await pause_until_next(self._renew_seconds, stop)
            if self.is_owner:
                with contextlib.suppress(UnavailableError):
                    self._set_owner(is_owner=await self._consumer.acquire())
        if self._nap is not None and not self._nap.expired():
            self._nap.reschedule(asyncio.get_running_loop().time())

    async def _follow_log(self, stop: asyncio.Event) -> None:
        failures_in_a_row = 0
        while not stop.is_set():
            try:
                if not self.is_owner:
                    self._cursor = None
                    self.is_owner = await self._consumer.acquire()
                if not self.is_owner:
                    await pause(self._standby_seconds, stop)
                    continue
                cursor = self._cursor or await self._store.read_cursor()
                self._cursor = await self._advance(cursor, stop)
                failures_in_a_row = 0
            except CursorMovedError:
                log.warning("projection_cursor_moved_by_another", projection=self.name)
                self._cursor = None
                self.cursor_moved.notify()
            except Exception as error:  # noqa: BLE001 - the outermost loop: whatever it is may pass
                # Read the cursor again: the batch may have been committed although its answer was lost.
                self._cursor = None
                failures_in_a_row += 1
                self.failures += 1
                seconds = _compute_backoff(failures_in_a_row)
                self._log_failure(error, retry_in_seconds=seconds)
                # Perhaps only we cannot reach the store: another worker may try meanwhile.
                await self._release()
                await pause(seconds, stop)

    async def _advance(self, cursor: str, stop: asyncio.Event) -> str:
        """Apply the next batch, or wait for it; return the new cursor."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        moved = until = None
        if self._follows is not None:
            moved = self._follows.cursor_moved.next_move
            until = await self._follows.read_cursor()
        entries = await self._consumer.read(cursor, until=until, count_max=self._batch_max)
        if entries is None:
            self._set_owner(is_owner=False)
            return cursor
        if entries:
            cursor = await self._applier.apply(entries, after=cursor)
            self._cursor = cursor
            self.cursor_moved.notify()
            if len(entries) < self._batch_max:
                seconds = self._pace.find_pause(len(entries), began_at)
                await pause(began_at + seconds - loop.time(), stop)
            return cursor
        if moved is not None and self._follows is not None and self._follows.is_owner:
            # Our leader has not applied the newest entries yet, so that a wait in Valkey would end at once.
            await self._wait_for(moved.wait(), FOLLOW_TOLD_WAITS * self._wait_seconds, stop)
            if moved.is_set():
                return cursor
        await self._wait_for(self._consumer.wait(cursor, seconds=self._wait_seconds), None, stop)
        if moved is not None:
            await self._wait_for(moved.wait(), FOLLOW_SECONDS, stop)
        return cursor

    async def _wait_for(self, sign: Awaitable[object], seconds: float | None, stop: asyncio.Event) -> None:
        """Wait for `sign`, at most `seconds` and not beyond a stop."""
        try:
            async with asyncio.timeout(0 if stop.is_set() else seconds) as self._nap:
                await sign
        except TimeoutError:
            pass
        finally:
            self._nap = None

    def _set_owner(self, *, is_owner: bool) -> None:
        """Note which process applies; when it is another one, followers that wait for our notices poll for themselves."""
        if self.is_owner and not is_owner:
            self.cursor_moved.notify()
        self.is_owner = is_owner

    async def _release(self) -> None:
        self._set_owner(is_owner=False)
        self._cursor = None
        with contextlib.suppress(UnavailableError):
            await self._consumer.release()

    def _log_failure(self, error: Exception, *, retry_in_seconds: float) -> None:
        about = {"projection": self.name, "retry_in_seconds": retry_in_seconds}
        if isinstance(error, UnavailableError):
            self._log_waiting(**about, reason=error.detail)
        else:
            log.error("projection_failed", **about, exc_info=error)


def _compute_backoff(failures_in_a_row: int) -> float:
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2 ** min(failures_in_a_row - 1, 10))
