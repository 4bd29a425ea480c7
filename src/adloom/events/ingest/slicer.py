"""Long work takes turns with everything else: one slice of it each time around the loop, whoever else works long."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from adloom.core.errors import UnavailableError
from adloom.events.ingest.batch import EventBatch
from adloom.runtime.http.fast.fast_routes import FastAnswer

SLICE_EVENTS: Final = 32  # About half a millisecond, which everybody else may have to wait.
WAITING_MAX: Final = 64  # Beyond this we answer 503: these are up to 64 MiB and half a second.


class _Work(msgspec.Struct, frozen=True, eq=False):
    batch: EventBatch
    finish: Callable[[], asyncio.Future[FastAnswer]]
    answered: asyncio.Future[FastAnswer]


class BatchSlicer:
    """Batches, one after another, a slice at a time."""

    def __init__(self, *, slice_events: int = SLICE_EVENTS, waiting_max: int = WAITING_MAX) -> None:
        self._slice_events = slice_events
        self._waiting_max = waiting_max
        self._waiting: deque[_Work] = deque()

    def run(
        self, batch: EventBatch, finish: Callable[[], asyncio.Future[FastAnswer]]
    ) -> asyncio.Future[FastAnswer]:
        """Judge a batch and finish it; the future gives what `finish` gives."""
        if len(self._waiting) >= self._waiting_max:
            raise UnavailableError("Too many batches are waiting; please send it again.")
        loop = asyncio.get_running_loop()
        work = _Work(batch, finish, loop.create_future())
        self._waiting.append(work)
        if len(self._waiting) == 1:
            loop.call_soon(self._run_slice)
        return work.answered

    def _run_slice(self) -> None:
        work = self._waiting[0]
        try:
            work.batch.process(self._slice_events)
            is_finished = work.batch.is_finished
            if is_finished:
                work.finish().add_done_callback(lambda done: _copy_result(done, work.answered))
        except Exception as error:  # noqa: BLE001 - the callback's outermost frame: its client must not hang
            is_finished = True
            if not work.answered.done():
                work.answered.set_exception(error)
        if is_finished:
            self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run_slice)


def _copy_result(done: asyncio.Future[FastAnswer], answered: asyncio.Future[FastAnswer]) -> None:
    error = None if done.cancelled() else done.exception()
    if answered.done():
        return
    if done.cancelled():
        answered.cancel()
    elif error is not None:
        answered.set_exception(error)
    else:
        answered.set_result(done.result())
