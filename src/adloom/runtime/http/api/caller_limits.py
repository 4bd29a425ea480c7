"""Bounds on what one caller asks of the control plane: requests at once, and a minute.

Requests over the first bound wait: ten slow statistics of one account must leave connections for the others.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from adloom.core.caller import Caller
from adloom.core.errors import RateLimitedError
from adloom.runtime.http.rate_limit import RateLimiter

WAIT_SECONDS_MAX: Final = 20.0
WAITING_MAX: Final = 200  # Of one caller; beyond, requests are refused at once.


class CallerLimits:
    """The requests that are under way in this process, by caller."""

    def __init__(self, *, at_once_max: int, per_minute: int) -> None:
        self._at_once_max = at_once_max
        self._limiter = RateLimiter(per_minute)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._present: dict[str, int] = {}

    @property
    def present(self) -> int:
        """How many requests run or wait."""
        return sum(self._present.values())

    @asynccontextmanager
    async def hold(self, caller: Caller, *, now: datetime) -> AsyncGenerator[None]:
        """Wait for a turn, and keep it; raises RateLimitedError."""
        # All users and keys of an account count together.
        key = caller.subject if caller.account_id is None else f"{caller.role}:{caller.account_id}"
        self._limiter.check(key, now=now)
        if self._present.get(key, 0) >= self._at_once_max + WAITING_MAX:
            raise self._make_refusal()
        self._present[key] = self._present.get(key, 0) + 1
        turns = self._turns.setdefault(key, asyncio.Semaphore(self._at_once_max))
        try:
            try:
                async with asyncio.timeout(WAIT_SECONDS_MAX):
                    await turns.acquire()
            except TimeoutError:
                raise self._make_refusal() from None
            try:
                yield
            finally:
                turns.release()
        finally:
            self._present[key] -= 1
            if not self._present[key]:
                del self._present[key], self._turns[key]

    def _make_refusal(self) -> RateLimitedError:
        return RateLimitedError(
            f"Too many of your requests are under way: {self._at_once_max} run at once. Send them one after another.",
            retry_after_seconds=1,
        )
