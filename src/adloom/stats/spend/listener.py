"""One listener of spend updates: what waits for it, and what it may see."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final
from uuid import UUID

from adloom.stats.spend.event import BEGINNING, HEARTBEAT, LISTENING

HEARTBEAT_SECONDS: Final = 15.0
# A campaign may report hundreds of times a second; only the last state matters.
PAUSE_SECONDS: Final = 0.25
# Access is checked when a stream begins; this bound makes clients ask again.
LISTENING_SECONDS_MAX: Final = 900.0
WAITING_MAX: Final = 10_000


class Listener:
    """Receives updates of one account's campaigns, or of all; only the last of each campaign waits."""

    def __init__(
        self,
        account_id: UUID | None,
        *,
        waiting_max: int = WAITING_MAX,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        seconds_max: float = LISTENING_SECONDS_MAX,
    ) -> None:
        self._account_id = account_id
        self._waiting_max = waiting_max
        self._heartbeat_seconds = heartbeat_seconds
        self._seconds_max = seconds_max
        self._waiting: dict[UUID, bytes] = {}
        self._begins_anew = False
        self._has_news = asyncio.Event()
        self.is_over = False

    def may_see(self, advertiser_id: UUID | None) -> bool:
        return self._account_id is None or self._account_id == advertiser_id

    def begin(self) -> None:
        """Announce that from now on nothing is left out."""
        self._begins_anew = True
        self._has_news.set()

    def push(self, campaign_id: UUID, event: bytes) -> bool:
        """Take an update; return False and end if the listener is too slow."""
        self._waiting[campaign_id] = event
        if len(self._waiting) > self._waiting_max:
            self.end()
            return False
        self._has_news.set()
        return True

    def end(self) -> None:
        self.is_over = True
        self._waiting.clear()
        self._has_news.set()

    async def updates(self) -> AsyncGenerator[bytes]:
        """Yield what to send, until the end."""
        clock = asyncio.get_running_loop()
        ends_at = clock.time() + self._seconds_max
        yield BEGINNING
        while not self.is_over and clock.time() < ends_at:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat_seconds):
                    await self._has_news.wait()
            if self.is_over:
                break
            if not self._has_news.is_set():
                yield HEARTBEAT
                continue
            yield self._take()
            await asyncio.sleep(PAUSE_SECONDS)

    def _take(self) -> bytes:
        parts = [LISTENING] if self._begins_anew else []
        parts += self._waiting.values()
        self._waiting.clear()
        self._begins_anew = False
        self._has_news.clear()
        return b"".join(parts)
