"""Answers the requests of one tick together: first all are read, then all are answered, then all are written.

Each of the three is different code. If they alternate for every request, the processor's caches hold little of
it; and a client that is woken for every answer sends its next request alone. A request that comes after a quiet
millisecond is likely to be alone, and is answered at once.
"""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

import structlog

from adloom.runtime.http.fast.errors import answer_error
from adloom.runtime.http.fast.fast_routes import FastHandler, FastRequest, FastResult

TOGETHER_MAX: Final = 64  # The first of them waits for the last: about a millisecond.
QUIET_SECONDS: Final = 0.0015  # The event loop's clock has milliseconds.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Connection(Protocol):
    """A connection that waits for an answer."""

    loop: AbstractEventLoop

    def on_result(self, request: FastRequest, outcome: FastResult) -> None: ...


class TickBatch:
    """The requests of this tick so far."""

    def __init__(self) -> None:
        self._asked: list[tuple[Connection, FastHandler, FastRequest]] = []
        self._came_at = 0.0

    def record_arrival(self, now: float) -> bool:
        """Note that a request came; return whether others came just before it, by the event loop's clock."""
        came_at, self._came_at = self._came_at, now
        return now - came_at <= QUIET_SECONDS

    def add(self, connection: Connection, handler: FastHandler, request: FastRequest) -> None:
        """Queue a request; the batch is answered when all requests of this tick are read."""
        if not self._asked:
            connection.loop.call_soon(self._answer)
        self._asked.append((connection, handler, request))

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        for start in range(0, len(asked), TOGETHER_MAX):
            some = asked[start : start + TOGETHER_MAX]
            outcomes: list[FastResult] = []
            for _, handler, request in some:
                try:
                    outcomes.append(handler(request))
                except Exception as error:  # noqa: BLE001 - the outermost frame of a fast request
                    outcomes.append(answer_error(error))
            for (connection, _, request), outcome in zip(some, outcomes, strict=True):
                try:
                    connection.on_result(request, outcome)
                except Exception:  # Whatever is wrong with one connection, others wait too.
                    log.exception("answer_not_taken")
