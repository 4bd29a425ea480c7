"""Answering requests of one turn of the loop together: all are read, then all are answered, then all is written.

Each of the three is other code. Where they take turns for every request, the processor finds little of it in its
caches; and a client that is woken for every answer sends its next request alone.
"""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

import structlog

from adloom.runtime.http.fast.errors import run_handler
from adloom.runtime.http.fast.fast_routes import FastHandler, FastRequest, FastResult

TOGETHER_MAX: Final = 64  # The first of them waits for the last: about a millisecond.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Connection(Protocol):
    """A connection that has asked something, and waits."""

    loop: AbstractEventLoop

    def on_result(self, request: FastRequest, outcome: FastResult) -> None: ...


class TickBatch:
    """The requests of this turn so far."""

    def __init__(self) -> None:
        self._asked: list[tuple[Connection, FastHandler, FastRequest]] = []

    def add(self, connection: Connection, handler: FastHandler, request: FastRequest) -> None:
        """Queue a request; the batch is answered when all requests of this tick are read."""
        if not self._asked:
            connection.loop.call_soon(self._answer)
        self._asked.append((connection, handler, request))

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        for start in range(0, len(asked), TOGETHER_MAX):
            some = asked[start : start + TOGETHER_MAX]
            outcomes = [run_handler(handler, request) for _, handler, request in some]
            for (connection, _, request), outcome in zip(some, outcomes, strict=True):
                try:
                    connection.on_result(request, outcome)
                except Exception:  # Whatever is wrong with one connection, others wait too.
                    log.exception("answer_not_taken")
