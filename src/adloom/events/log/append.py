"""Group commit: events that arrive while one append is under way go into the next one, together.

One append is in flight at a time, so batches grow by themselves as the log gets slower, and an idle appender waits
for its first event without a timer. A fast log would get small batches, and their cost is in their number: so an append
begins some milliseconds after the end of the one before it, and takes along what came meanwhile. Under load it waits for
some more: half of what an append costs the server is to make its file durable, however little is in it. An event takes
it 15 to 19 µs where 13 are appended together, 10 to 11 where it is 27, and 9 where it is 54. Where enough are there it
waits no longer: this process would only sleep, and what it needs for the next event would leave the processor's caches.

When an append fails, its events may be in the log all the same: the answer may have been lost. They are put into the
spool, if there is one with room. Otherwise the client gets 503 and may send them again. Repeating is safe, because
projections count a correlation id once.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

import structlog

from adloom.core.errors import UnavailableError
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer
from adloom.runtime.loops import RepeatedLine

PENDING_MAX: Final = 10_000  # Beyond this we answer 503: losing requests is cheaper than losing memory.
PENDING_BYTES_MAX: Final = 16 * 2**20  # The same, in bytes: an event has some kilobytes at most.
BATCH_MAX: Final = 500  # The server does nothing else while it takes a batch: this is about a millisecond.
APART_SECONDS: Final = 0.002  # From the end of an append to the beginning of the next.
# So many events after that are a load; fewer are appended at once. At 2,000 a second 4 come on average.
LOADED_MIN: Final = 4
# Under load an append waits until so many events are there, but not longer than this. Where they do not come, because
# a few clients send one after the other, the next appends wait only for as many as came.
GATHERED_MIN: Final = 96
LONGER_SECONDS_MAX: Final = 0.012
SHORT_WAITS: Final = 64
SHORT_WAIT_SECONDS_MAX: Final = 0.003
APPEND_SECONDS_MAX: Final = 3.0
CLOSE_SECONDS_MAX: Final = 2.0
CLOSE_LEDGER_SECONDS_MAX: Final = 1.0  # Part of CLOSE_SECONDS_MAX; the rest is for the spool.

T = TypeVar("T")

# An event, what waits for it, and its result; each future has its own type of result.
_Waiting: TypeAlias = tuple[bytes, asyncio.Future[Any] | DeferredAnswer | None, Any]

_MORE: Final = object()  # In place of a result: more events of the same request follow.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class EventLog(Protocol):
    """Where events are appended."""

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all, in order, and return when they are durable; UnavailableError when that is not known."""


class EventSpool(Protocol):
    """Where events wait while the log is away."""

    @property
    def is_empty(self) -> bool:
        """Whether new events may go to the log without overtaking older ones."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether it is empty and not just being drained."""
        ...

    @property
    def has_room_to_spare(self) -> bool:
        """Whether it should take events that no request waits for."""
        ...

    async def wait_for_drain(self) -> None:
        """Wait a moment if it is just being drained."""

    async def put(self, entries: Sequence[bytes]) -> None:
        """Take all, and return when they are durable; UnavailableError if it took none."""


class EventAppender:
    """Appends events for many requests at once; use it as a context, which owns its one task."""

    def __init__(  # noqa: PLR0913 - bounds, each with its default
        self,
        store: EventLog,
        spool: EventSpool | None = None,
        *,
        pending_max: int = PENDING_MAX,
        pending_bytes_max: int = PENDING_BYTES_MAX,
        batch_max: int = BATCH_MAX,
        append_seconds_max: float = APPEND_SECONDS_MAX,
    ) -> None:
        self._store = store
        self._spool = spool
        self._pending_max = pending_max
        self._pending_bytes_max = pending_bytes_max
        self._batch_max = batch_max
        self._append_seconds_max = append_seconds_max
        self._pending: list[_Waiting] = []
        self._pending_bytes = 0
        # What the task waits for, if it waits for events, and how many.
        self._woken: asyncio.Future[None] | None = None
        self._wakes_at: float = math.inf
        self._is_closing = False
        self._ledger_until = math.inf
        self._taken_at = -math.inf  # When the last append took what was pending,
        self._next_at = -math.inf  # and when the next may begin.
        self._short_waits = self._enough = 0
        self._due = math.inf  # When the append that is under way has to be done.
        self._is_overdue = False
        self._deadline: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._now: Callable[[], float]
        self._task: asyncio.Task[None] | None = None
        # A full disk fails every batch, hundreds a second.
        self._log_failure = RepeatedLine(log, "ledger_append_failed")
        # Plain counters, read by the metrics.
        self.appended = 0
        self.spooled = 0
        self.failed = 0
        self.refused = 0
        self.dropped = 0
        self.batches = 0

    async def __aenter__(self) -> Self:
        self._loop = loop = asyncio.get_running_loop()
        self._now = loop.time
        self._task = loop.create_task(self._run(), name="ledger-appender")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Append or spool what is still pending, within a bound; what is left then is refused."""
        assert self._task is not None
        self._is_closing = True
        self._wake()
        self._shorten_deadline()
        await asyncio.wait([self._task], timeout=CLOSE_SECONDS_MAX)
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._deadline is not None:
            self._deadline.cancel()
        self._refuse_pending()

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def pending_bytes(self) -> int:
        return self._pending_bytes

    def append(self, entry: bytes, result: T) -> asyncio.Future[T]:
        """Append an event; the future has `result` when it is durable, and UnavailableError if that is not known.

        With the result given in advance the caller needs no second future and no callback.
        """
        loop = self._admit(1, len(entry))
        future: asyncio.Future[T] = loop.create_future()
        self._pending.append((entry, future, result))
        self._wake_if_enough()
        return future

    def append_for(self, entry: bytes, answer: FastAnswer) -> DeferredAnswer:
        """Append an event as `append` does, for a request that has its answer then: cheaper than a future."""
        pending, size = self._pending, self._pending_bytes + len(entry)
        is_full = len(pending) >= self._pending_max or size > self._pending_bytes_max
        if is_full or self._is_closing or self._task is None:
            self._admit(1, len(entry))  # Which says why not.
        self._pending_bytes = size
        deferred = DeferredAnswer()
        pending.append((entry, deferred, answer))
        if len(pending) >= self._wakes_at:
            self._wake()
        return deferred

    def append_all(self, entries: Sequence[bytes], result: T) -> asyncio.Future[T]:
        """Append the events of one request, in order; the future has `result` when all are durable.

        They are refused together. They may be in two appends: then the first failure fails them all.
        """
        loop = self._admit(len(entries), sum(map(len, entries)))
        future: asyncio.Future[T] = loop.create_future()
        if not entries:
            future.set_result(result)
            return future
        *others, last = entries
        self._pending.extend((entry, future, _MORE) for entry in others)
        self._pending.append((last, future, result))
        self._wake_if_enough()
        return future

    def enqueue(self, entry: bytes) -> bool:
        """Append an event that no request waits for; False when it was dropped because too many wait."""
        return self.enqueue_all((entry,)) == 1

    def enqueue_all(self, entries: Sequence[bytes]) -> int:
        """Append events that no request waits for, in order; return how many were taken. The others are dropped."""
        is_open = self._task is not None and not self._is_closing
        room = max(0, self._pending_max - len(self._pending)) if is_open else 0
        taken = entries[:room]
        size = sum(map(len, taken))
        if self._pending_bytes + size > self._pending_bytes_max:
            taken, size = (), 0
        self.dropped += len(entries) - len(taken)
        if taken:
            self._pending_bytes += size
            self._pending.extend([(entry, None, None) for entry in taken])
            self._wake_if_enough()
        return len(taken)

    def _admit(self, count: int, size: int) -> asyncio.AbstractEventLoop:
        if self._is_closing or self._task is None:
            self.refused += count
            raise UnavailableError("This process is about to stop; please send the event again.")
        size += self._pending_bytes
        if len(self._pending) + count > self._pending_max or size > self._pending_bytes_max:
            self.refused += count
            raise UnavailableError("Too many events are waiting for the event log; please send it again.")
        self._pending_bytes = size
        return self._loop

    async def _run(self) -> None:
        now, appended = self._now, 0
        while True:
            if appended < LOADED_MIN:  # Under load the next ones are on their way.
                await self._wait_for(1)
            if (seconds := self._next_at - now()) > 0:
                await self._gather(seconds)
            if not self._pending:
                await self._wait_for(1)
                if not self._pending:
                    return  # It is closing.
            appended = await self._append_batch()
            self._next_at = now() + APART_SECONDS

    async def _gather(self, seconds: float) -> None:
        """Wait for more events, until there are enough."""
        is_short = self._short_waits > 0
        enough, seconds_max = GATHERED_MIN, LONGER_SECONDS_MAX
        if is_short:
            self._short_waits -= 1
            enough, seconds_max = self._enough, SHORT_WAIT_SECONDS_MAX
        await self._wait_for(enough, seconds)
        count = len(self._pending)
        if not LOADED_MIN <= count < enough:
            return
        # Some came while the last append was under way.
        seconds_each = (self._now() - self._taken_at) / count
        seconds = min(seconds_each * (enough - count), seconds_max)
        await self._wait_for(enough, seconds)
        if not is_short and len(self._pending) - count < seconds / seconds_each / 2:
            self._short_waits, self._enough = SHORT_WAITS, len(self._pending)

    async def _wait_for(self, count: int, seconds_max: float | None = None) -> None:
        """Wait until so many events are pending or the appender closes, but not longer than that."""
        if len(self._pending) >= min(count, self._batch_max) or self._is_closing:
            return
        self._woken = woken = self._loop.create_future()
        self._wakes_at = min(count, self._batch_max)
        timer = None if seconds_max is None else self._loop.call_later(seconds_max, self._wake)
        try:
            await woken
        finally:
            if timer is not None:
                timer.cancel()

    def _wake_if_enough(self) -> None:
        if len(self._pending) >= self._wakes_at:
            self._wake()

    def _wake(self) -> None:
        """Let the task go on, if it waits for events."""
        woken, self._woken, self._wakes_at = self._woken, None, math.inf
        if woken is not None and not woken.done():
            woken.set_result(None)

    async def _append_batch(self) -> int:
        """Append what is pending, up to a bound, and return how much it was."""
        batch, self._pending = self._pending[: self._batch_max], self._pending[self._batch_max :]
        entries = [each[0] for each in batch]
        self._pending_bytes -= sum(map(len, entries))
        self._taken_at = self._now()
        self.batches += 1
        try:
            await self._store_batch(batch, entries)
        except asyncio.CancelledError as error:
            self._fail(batch, error)
            raise
        except Exception as error:  # noqa: BLE001 - the task's outermost loop: later events must not hang
            self._fail(batch, error)
        else:
            for _, waiting, result in batch:
                if isinstance(waiting, DeferredAnswer):
                    try:  # As `_settle` does.
                        waiting.resolve(result)
                    except Exception:
                        log.exception("answer_not_taken")
                elif waiting is not None and result is not _MORE and not waiting.done():
                    waiting.set_result(result)
        return len(batch)

    async def _store_batch(self, batch: Sequence[_Waiting], entries: Sequence[bytes]) -> None:
        """Make a batch durable, in the log or behind what waits in the spool."""
        spool = self._spool
        if spool is not None and not spool.is_idle:
            await spool.wait_for_drain()
            if not spool.is_empty:
                await self._spool_batch(batch, spool)
                return
        try:
            await self._append(entries)
        except (UnavailableError, TimeoutError) as error:
            if spool is None:
                raise
            self._log_failure(events=len(batch), error=repr(error))
            await self._spool_batch(batch, spool)

    async def _spool_batch(self, batch: Sequence[_Waiting], spool: EventSpool) -> None:
        has_room = spool.has_room_to_spare
        entries = [entry for entry, future, _ in batch if has_room or future is not None]
        if entries:
            await spool.put(entries)
        self.spooled += len(entries)
        self.dropped += len(batch) - len(entries)

    async def _append(self, entries: Sequence[bytes]) -> None:
        task, now = self._task, self._now()
        assert task is not None, "this is its work"
        self._due = min(now + self._append_seconds_max, self._ledger_until)
        if self._deadline is None:
            self._deadline = self._loop.call_at(self._due, self._check_deadline)
        try:  # As `asyncio.timeout` does, which would set a timer for every append.
            await self._store.append(entries)
        except asyncio.CancelledError:
            if self._is_overdue and task.cancelling() == 1:
                raise TimeoutError from None
            raise
        finally:
            if self._is_overdue:  # Whatever became of the cancellation.
                task.uncancel()
            self._due, self._is_overdue = math.inf, False
        self.appended += len(entries)

    def _check_deadline(self) -> None:
        """Cancel an append that is overdue; one timer serves all that are made before it ends."""
        self._deadline = None
        if self._due == math.inf or self._task is None:
            return
        if self._now() < self._due:
            self._deadline = self._loop.call_at(self._due, self._check_deadline)
            return
        self._is_overdue = True
        self._task.cancel()

    def _shorten_deadline(self) -> None:
        """Leave time for the spool when we stop and the log does not answer."""
        if self._spool is None:
            return
        self._ledger_until = self._now() + CLOSE_LEDGER_SECONDS_MAX
        if self._deadline is not None and self._due != math.inf:
            self._deadline.cancel()
            self._due = min(self._due, self._ledger_until)
            self._deadline = self._loop.call_at(self._due, self._check_deadline)

    def _fail(self, batch: Sequence[_Waiting], error: BaseException) -> None:
        self.failed += len(batch)
        self._log_failure(events=len(batch), error=repr(error))
        for _, waiting, _ in batch:
            unavailable = UnavailableError("The event log does not answer; please send the event again.")
            if isinstance(waiting, DeferredAnswer):
                _settle(waiting.fail, unavailable)
            elif waiting is not None and not waiting.done():
                waiting.set_exception(unavailable)

    def _refuse_pending(self) -> None:
        left = list(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if left:
            self._fail(left, UnavailableError("The process is stopping."))


def _settle(settle: Callable[[Any], None], result: object) -> None:
    """Tell a connection; whatever is wrong with it, others wait too."""
    try:
        settle(result)
    except Exception:
        log.exception("answer_not_taken")
