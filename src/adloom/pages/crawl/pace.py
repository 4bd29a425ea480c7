"""How often a site is asked: at most one request in a while, and none while it asks us to wait."""

import asyncio
from typing import Final

PAUSE_SECONDS_MAX: Final = 60.0
PAUSE_SECONDS_DEFAULT: Final = 10.0


class CrawlPace:
    """Spaces the beginnings of requests; `delay_seconds` may grow when robots.txt asks for it."""

    def __init__(self, delay_seconds: float) -> None:
        self.delay_seconds = delay_seconds
        self._last_at = float("-inf")
        self._held_until = 0.0

    async def wait(self) -> None:
        """Wait for this request's turn."""
        now = asyncio.get_running_loop().time()
        self._last_at = max(self._last_at + self.delay_seconds, self._held_until, now)
        if self._last_at > now:
            await asyncio.sleep(self._last_at - now)

    def hold(self, seconds: float) -> None:
        """Let no request begin for a while: the server said so."""
        until = asyncio.get_running_loop().time() + min(seconds, PAUSE_SECONDS_MAX)
        self._held_until = max(self._held_until, until)


def read_retry_after(value: str | None) -> float:
    """Return the seconds of a `Retry-After`; a date, or anything else, is our own pause."""
    return (
        min(float(value), PAUSE_SECONDS_MAX) if value and value.strip().isdigit() else PAUSE_SECONDS_DEFAULT
    )
