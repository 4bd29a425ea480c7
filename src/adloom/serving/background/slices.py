"""Long work between requests: a step at a time, and the loop gets its turn after each millisecond of them.

A thread would take the interpreter away from the loop for 5 ms at a time, at every system call of a
request. This way a request waits for one step, whatever there is to compile.
"""

import asyncio
import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
SLICE_SECONDS = 0.001


class Slicer:
    """Does work in steps, with turns for others in between."""

    def __init__(self) -> None:
        self._time = asyncio.get_running_loop().time
        self._ends_at = self._time() + SLICE_SECONDS

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Do all steps, and give what they come to."""
        while True:
            await self.pause()
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    async def pause(self) -> None:
        """Let others have their turn if it is time."""
        if self._time() >= self._ends_at:
            await asyncio.sleep(0)
            self._ends_at = self._time() + SLICE_SECONDS


@contextmanager
def pause_gc() -> Generator[None]:
    """Keep the garbage collector from walking over everything that is being compiled, for 60 ms each time.

    What is compiled has no cycles; those that requests leave behind are found afterwards.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
