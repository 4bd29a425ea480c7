"""Loops that run until they are told to stop, and wait meanwhile."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Runnable(Protocol):
    """Something that runs until it is told to stop, such as a subscription."""

    async def run(self, stop: asyncio.Event) -> None: ...


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Wait, but not longer than until an event, such as being told to stop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()


def until_next(seconds: float) -> float:
    """Return how long it is until the clock shows a multiple of some seconds: who waits for that wakes with others."""
    if seconds <= 0:
        return 0.0
    rest = seconds - asyncio.get_running_loop().time() % seconds
    return rest if rest > seconds / 10 else rest + seconds


async def pass_on(stop: asyncio.Event, event: asyncio.Event) -> None:
    """Set an event that a loop waits for, as soon as the loop is told to stop."""
    await stop.wait()
    event.set()


class LookLoop:
    """Looks again and again for what has changed: at each notice, and after some seconds without one.

    Where something is away, that is logged once, and what was missed is found at the next look.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[None]],
        *,
        every_seconds: float,
        away: tuple[type[Exception], ...],
        name: str,
    ) -> None:
        self._look = look
        self._every_seconds = every_seconds
        self._away = away
        self._name = name
        self._is_cut_off = False
        self.noticed = asyncio.Event()

    async def run(self, stop: asyncio.Event, *beside: Runnable) -> None:
        """Look until `stop`; what brings the notices runs beside."""
        async with asyncio.TaskGroup() as group:
            for one in beside:
                group.create_task(one.run(stop))
            group.create_task(pass_on(stop, self.noticed))
            while not stop.is_set():
                self.noticed.clear()
                await self.try_to_look()
                if not stop.is_set():
                    await pause(until_next(self._every_seconds), self.noticed)

    async def try_to_look(self) -> None:
        try:
            await self._look()
        except self._away as error:
            if not self._is_cut_off:
                log.warning("look_cut_off", of=self._name, error=repr(error))
            self._is_cut_off = True
        except Exception:
            # The outermost loop: one row that cannot be read must not keep all others waiting.
            log.exception("look_failed", of=self._name)
        else:
            self._is_cut_off = False
