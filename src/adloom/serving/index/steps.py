"""Long work in small steps, so that a process can answer requests in between.

A thread would take the interpreter from the event loop for 5 ms at a time, at every system call of a
request. With steps, a request waits for at most one step.
"""

# pure

from collections.abc import Callable, Generator
from types import coroutine
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
SLICE_SECONDS = 0.001


def run_steps(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class Slicer:
    """Runs steps, and lets the event loop run after each millisecond; `clock` is a monotonic clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends_at = clock() + SLICE_SECONDS

    async def run(self, steps: Steps[T]) -> T:
        while True:
            if self._clock() >= self._ends_at:
                await _pause()
                self._ends_at = self._clock() + SLICE_SECONDS
            try:
                next(steps)
            except StopIteration as end:
                return end.value


@coroutine
def _pause() -> Generator[None]:
    yield  # As `asyncio.sleep(0)` does; pure code imports no asyncio.
