"""Turns at slow work, shared fairly: who asks often waits behind itself, not before others.

Clients take turns, each one piece of work at a time. Known clients and others take turns too, so strangers under any
number of names leave half of all turns to known ones.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import ceil
from typing import Final

from adloom.core.errors import UnavailableError

WAIT_SECONDS_MAX: Final = 5.0  # Beyond, we answer 503: people do not wait longer, and programs come again.
WAITING_MAX: Final = (
    100  # Of known clients, and of others; beyond, the client that has most waiting loses one.
)

Turn = asyncio.Future[None]


class FairTurns:
    """Who works now, and who waits."""

    def __init__(self, at_once_max: int, *, refusal: str, wait_seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self._free = at_once_max
        self._refusal = refusal
        self._wait_seconds_max = wait_seconds_max
        # Whether they are known → client → its turns, in order; the client whose turn is next is first.
        self._lines: dict[bool, OrderedDict[str, deque[Turn]]] = {True: OrderedDict(), False: OrderedDict()}
        self._next_is_known = True

    @asynccontextmanager
    async def hold(self, client: str, *, is_known: bool) -> AsyncGenerator[None]:
        """Wait for a turn, and keep it; raises UnavailableError."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(client, is_known=is_known)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, client: str, *, is_known: bool) -> None:
        line = self._lines[is_known]
        turn = asyncio.get_running_loop().create_future()
        line.setdefault(client, deque()).append(turn)
        if sum(map(len, line.values())) > WAITING_MAX:
            # The last of the longest: a client with more than its share makes room for others.
            loser = max(reversed(line), key=lambda one: len(line[one]))
            _leave(line, loser, line[loser][-1], error=self._make_refusal())
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._pass_on()  # It came at the moment at which we gave up.
            _leave(line, client, turn)
            if isinstance(error, TimeoutError):
                raise self._make_refusal() from None
            raise

    def _pass_on(self) -> None:
        first = self._next_is_known
        for is_known in (first, not first):
            line = self._lines[is_known]
            while line:
                client, turns = line.popitem(last=False)
                turn = turns.popleft()
                if turns:
                    line[client] = turns
                if not turn.done():
                    self._next_is_known = not is_known
                    turn.set_result(None)
                    return
        self._free += 1

    def _make_refusal(self) -> UnavailableError:
        return UnavailableError(self._refusal, retry_after_seconds=ceil(self._wait_seconds_max))


def _leave(
    line: OrderedDict[str, deque[Turn]], client: str, turn: Turn, *, error: Exception | None = None
) -> None:
    turns = line.get(client, deque())
    if turn in turns:
        turns.remove(turn)
        if not turns:
            del line[client]
    if error is not None and not turn.done():
        turn.set_exception(error)
