"""An event loop on virtual time: it never sleeps, and a seed decides the order of what is ready.

Two overrides make it so: `time` tells the virtual moment, and `call_soon` puts what is ready at a
place that the seed chooses. Where the real loop would sleep, the selector moves the moment on.
"""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from simulation.chance import seeded

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


# To do something takes time. Without it, whom asyncio calls a nanosecond early, as it may, would find for ever that it
# is not time yet.
ROUND_SECONDS: Final = 1e-9
ROUNDS_AT_ONCE_MAX: Final = 200_000  # Without time passing: a busy loop.


class StuckError(Exception):
    """A deadlock, or a busy loop: all tasks wait and no timer is set, or one never waits."""


class _NeverSleeping(selectors.SelectSelector):
    """Skips the time that it is asked to wait; there is nothing outside to wait for."""

    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = skip
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass at once."""
        self._rounds = 0 if timeout else self._rounds + 1
        if timeout is None or self._rounds > ROUNDS_AT_ONCE_MAX:
            self._rounds = 0  # Cleaning up afterwards starts from zero.
            raise StuckError
        self._skip(timeout + ROUND_SECONDS)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs days in seconds, in an order that its seed decides."""

    def __init__(self, seed: int) -> None:
        self._now = 0.0
        self._chance = seeded(seed, "order")
        super().__init__(_NeverSleeping(self._skip))

    def time(self) -> float:
        """Tell the virtual moment, in seconds since the start."""
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Put a callback among those that are ready, at any place."""
        handle = super().call_soon(callback, *args, context=context)
        # There is no other way in.
        ready = cast("deque[asyncio.Handle]", self._ready)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - private
        place = self._chance.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return handle

    def _skip(self, seconds: float) -> None:
        self._now += seconds


def run(seed: int, main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        return runner.run(main)
