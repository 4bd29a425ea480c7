"""A request rate limit per account."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

Sleep = Callable[[float], Awaitable[None]]
Moment = Callable[[], float]


class RequestPace:
    """Keeps a minimum interval between the requests of an account.

    Time is the event loop's, which never goes back.
    """

    def __init__(
        self, requests_per_second: float, *, sleep: Sleep = asyncio.sleep, moment: Moment | None = None
    ) -> None:
        assert requests_per_second > 0, "a rate of zero would wait for ever"
        self._interval_seconds = 1 / requests_per_second
        self._sleep = sleep
        self._moment = moment
        self._free_at: dict[str, float] = {}

    async def wait(self, account: str) -> None:
        """Wait until this account may send its next request."""
        now = self._now()
        free_at = max(now, self._free_at.get(account, now))
        # Reserve the slot before waiting, so that the next caller queues behind this one.
        self._free_at[account] = free_at + self._interval_seconds
        if free_at > now:
            await self._sleep(free_at - now)

    def delay_next(self, account: str, length: timedelta) -> None:
        """Delay the next request of an account."""
        until = self._now() + length.total_seconds()
        self._free_at[account] = max(until, self._free_at.get(account, until))

    def _now(self) -> float:
        return (self._moment or asyncio.get_running_loop().time)()
