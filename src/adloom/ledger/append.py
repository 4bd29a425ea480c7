"""Group commit: events that arrive while one append is under way go into the next one, together.

One append is in flight at a time, so a batch grows by itself as the ledger gets slower, and an
idle appender waits for its first event without a timer.

When an append fails, its events may be in the ledger all the same: the answer may have been
lost on the way. The client is told 503 and may send them again, or not; either is right,
because projections count a correlation id once.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import structlog

from adloom.core.errors import UnavailableError

PENDING_MAX: Final = 10_000  # Beyond this we answer 503: losing requests is cheaper than losing memory.
BATCH_MAX: Final = 500  # The server does nothing else while it takes a batch: this is about a millisecond.
APPEND_SECONDS_MAX: Final = 3.0
CLOSE_SECONDS_MAX: Final = 2.0

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class LedgerStore(Protocol):
    """Where events are kept."""

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all, in order, and return when they are durable; UnavailableError when that is not known."""
        ...


class LedgerAppender:
    """Appends events for many requests at once; use it as a context, which owns its one task."""

    def __init__(
        self,
        store: LedgerStore,
        *,
        pending_max: int = PENDING_MAX,
        batch_max: int = BATCH_MAX,
        append_seconds_max: float = APPEND_SECONDS_MAX,
    ) -> None:
        self._store = store
        self._pending_max = pending_max
        self._batch_max = batch_max
        self._append_seconds_max = append_seconds_max
        # The results are of many types, each future's its own.
        self._pending: deque[tuple[bytes, asyncio.Future[Any], Any]] = deque()
        self._arrived = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        # Plain counters: a collector reads them when it is asked.
        self.appended = 0
        self.failed = 0
        self.refused = 0
        self.batches = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="ledger-appender")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Append what is still pending, within a bound; what is left then is refused."""
        assert self._task is not None
        self._is_closing = True
        self._arrived.set()
        await asyncio.wait([self._task], timeout=CLOSE_SECONDS_MAX)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._refuse_pending()

    @property
    def pending(self) -> int:
        """How many events wait for their turn."""
        return len(self._pending)

    def append(self, entry: bytes, result: T) -> asyncio.Future[T]:
        """Append an event; the future gives `result` when it is durable, and UnavailableError if that is not known.

        The caller says what the future will give so that an answer made in advance needs no
        second future and no callback.
        """
        if self._is_closing or self._task is None:
            self.refused += 1
            raise UnavailableError("This process is about to stop; please send the event again.")
        if len(self._pending) >= self._pending_max:
            self.refused += 1
            raise UnavailableError("Too many events are waiting for the ledger; please send it again.")
        future: asyncio.Future[T] = self._task.get_loop().create_future()
        self._pending.append((entry, future, result))
        self._arrived.set()
        return future

    async def _run(self) -> None:
        while True:
            while self._pending:
                await self._append_batch()
            if self._is_closing:
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def _append_batch(self) -> None:
        take = self._pending.popleft
        batch = [take() for _ in range(min(len(self._pending), self._batch_max))]
        self.batches += 1
        try:
            async with asyncio.timeout(self._append_seconds_max):
                await self._store.append([entry for entry, _, _ in batch])
        except (UnavailableError, TimeoutError) as error:
            self._fail(batch, error)
        except asyncio.CancelledError as error:
            self._fail(batch, error)
            raise
        except Exception as error:  # noqa: BLE001 - the task's outermost loop: later events must not hang
            self._fail(batch, error)
        else:
            self.appended += len(batch)
            for _, future, result in batch:
                if not future.done():
                    future.set_result(result)

    def _fail(self, batch: Sequence[tuple[bytes, asyncio.Future[Any], Any]], error: BaseException) -> None:
        self.failed += len(batch)
        log.warning("ledger_append_failed", events=len(batch), error=repr(error))
        for _, future, _ in batch:
            if not future.done():
                future.set_exception(
                    UnavailableError("The ledger does not answer; please send the event again.")
                )

    def _refuse_pending(self) -> None:
        left = list(self._pending)
        self._pending.clear()
        if left:
            self._fail(left, UnavailableError("The process is stopping."))
