"""Loops that run until they are stopped, and wait meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Any, Final, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import structlog

REPEATED_SECONDS: Final = 1.0  # Of a line that may come a thousand times a second, one is written.
# Of one that comes again at every try while a server is away: a worker has a dozen loops that try.
OUTAGE_SECONDS: Final = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Runnable(Protocol):
    """Something that runs until it is stopped, such as a subscription."""

    async def run(self, stop: asyncio.Event) -> None: ...


def read_loop_seconds() -> float:
    return asyncio.get_running_loop().time()


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Wait, but not longer than until an event, such as the one that stops it."""
    loop = asyncio.get_running_loop()
    await _wait(until, lambda waiter: loop.call_later(seconds, _wake, waiter).cancel)


async def pause_until_next(seconds: float, until: asyncio.Event) -> None:
    """Wait until the clock shows a multiple of some seconds, or for an event, so that waiting tasks wake together."""
    await (_wait(until, lambda waiter: _wake_at_next(seconds, waiter)) if seconds > 0 else pause(0, until))


async def sleep_until_next(seconds: float, *, after: float = 0.0) -> None:
    """Wait until so long after the clock shows a multiple of some seconds, together with all tasks that do."""
    waiter = asyncio.get_running_loop().create_future()
    leave = _wake_at_next(seconds, waiter, after)
    try:
        await waiter
    finally:
        leave()


def compute_wait(seconds: float, *, after: float = 0.0) -> float:
    """Return the seconds until the next multiple of `seconds`, moved by `after`; one that is too near is left out."""
    if seconds <= 0:
        return 0.0
    rest = seconds - (asyncio.get_running_loop().time() - after) % seconds
    return rest if rest > seconds / 10 else rest + seconds


Waiter: TypeAlias = "asyncio.Future[Any]"
_Waiters: TypeAlias = dict[Waiter, None]  # In their order: simulated runs repeat themselves.

# By loop and moment. One timer for all: timers of their own would end some milliseconds after each other.
_waiting: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _Waiters]]] = WeakKeyDictionary()


def _wake_at_next(seconds: float, waiter: Waiter, after: float = 0.0) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    moments = _waiting.setdefault(loop, {})
    moment = round(loop.time() + compute_wait(seconds, after=after), 3)
    if moment not in moments:
        moments[moment] = {}
        loop.call_at(moment, _wake_all, moments, moment)
    waiters = moments[moment]
    waiters[waiter] = None
    return lambda: waiters.pop(waiter, None)


def _wake_all(moments: dict[float, _Waiters], moment: float) -> None:
    for waiter in moments.pop(moment):
        _wake(waiter)


def _wake(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)


@coroutine
def _wait(until: asyncio.Event, wake: Callable[[Waiter], Callable[[], None]]) -> Generator[Any, None, None]:
    """Wait for an event, or until the waiter is woken: a timeout would cancel it, at several times the cost."""
    waiting = until.wait()
    try:
        waiter = waiting.send(None)
    except StopIteration:  # It is set.
        return
    leave = wake(waiter)
    try:
        yield waiter
    finally:
        leave()
        waiting.close()


async def pass_on(stop: asyncio.Event, event: asyncio.Event) -> None:
    """Set an event that a loop waits for, as soon as the loop is stopped."""
    await stop.wait()
    event.set()


class PollLoop:
    """Polls for what has changed: at each notice, and after some seconds without one.

    Where something is away, that is logged once, and what was missed is found at the next poll.
    """

    def __init__(
        self,
        poll: Callable[[], Awaitable[None]],
        *,
        every_seconds: float | Callable[[], float],
        away: tuple[type[Exception], ...],
        name: str,
    ) -> None:
        self._poll = poll
        self._every_seconds = every_seconds
        self._away = away
        self._name = name
        self._is_cut_off = False
        self.noticed = asyncio.Event()

    async def run(self, stop: asyncio.Event, *beside: Runnable) -> None:
        """Poll until `stop`; what brings the notices runs beside."""
        async with asyncio.TaskGroup() as group:
            for one in beside:
                group.create_task(one.run(stop))
            group.create_task(pass_on(stop, self.noticed))
            while not stop.is_set():
                self.noticed.clear()
                await self.try_to_poll()
                if not stop.is_set():
                    every = self._every_seconds
                    await pause_until_next(every() if callable(every) else every, self.noticed)

    async def try_to_poll(self) -> None:
        try:
            await self._poll()
        except self._away as error:
            if not self._is_cut_off:
                log.warning("look_cut_off", of=self._name, error=repr(error))
            self._is_cut_off = True
        except Exception:
            # The outermost loop: one row that cannot be read must not keep all others waiting.
            log.exception("look_failed", of=self._name)
        else:
            self._is_cut_off = False


class RepeatedLine:
    """Writes a line at most once in some seconds; what was left out is counted in the next one, as `times`."""

    def __init__(
        self,
        log: structlog.stdlib.BoundLogger,
        event: str,
        *,
        seconds: float = REPEATED_SECONDS,
        now: Callable[[], float] = read_loop_seconds,
    ) -> None:
        self._log = log
        self._event = event
        self._seconds = seconds
        self._now = now
        self._next_at: float | None = None
        self._times = 0

    def __call__(self, **fields: Any) -> None:  # noqa: ANN401 - whatever a line has
        self._times += 1
        now = self._now()
        if self._next_at is not None and now < self._next_at:
            return
        self._next_at = now + self._seconds
        times, self._times = self._times, 0
        self._log.warning(self._event, times=times, **fields)
