"""Not asking a platform more often than it likes: a distance between requests, kept for each account."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

Sleep = Callable[[float], Awaitable[None]]
Moment = Callable[[], float]


class RequestPace:
    """Lets requests of an account through one after another, each after its distance from the last.

    Time is that of the event loop: it never goes back.
    """

    def __init__(
        self, requests_per_second: float, *, sleep: Sleep = asyncio.sleep, moment: Moment | None = None
    ) -> None:
        assert requests_per_second > 0, "whoever may never ask waits for ever"
        self._distance = 1 / requests_per_second
        self._sleep = sleep
        self._moment = moment
        self._free_at: dict[str, float] = {}

    async def wait(self, account: str) -> None:
        """Wait for this account's turn."""
        now = self._now()
        free_at = max(now, self._free_at.get(account, now))
        # Taken before we wait, so that who comes next waits behind us.
        self._free_at[account] = free_at + self._distance
        if free_at > now:
            await self._sleep(free_at - now)

    def delay_next(self, account: str, length: timedelta) -> None:
        """Let the next request of an account wait for a while."""
        until = self._now() + length.total_seconds()
        self._free_at[account] = max(until, self._free_at.get(account, until))

    def _now(self) -> float:
        return (self._moment or asyncio.get_running_loop().time)()
