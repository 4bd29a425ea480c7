"""One who follows what is spent: what waits for it, and what it may see."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final
from uuid import UUID

from adloom.stats.spend.event import BEGINNING, HEARTBEAT, LISTENING

HEARTBEAT_SECONDS: Final = 15.0
# A campaign may say how it stands hundreds of times a second; of what is said meanwhile the last is enough.
PAUSE_SECONDS: Final = 0.25
# Who may listen is asked at the beginning. So that nobody does for long who no longer may, it has to ask again.
LISTENING_SECONDS_MAX: Final = 900.0
WAITING_MAX: Final = 10_000


class Listener:
    """Takes news of one account's campaigns, or of all; of each campaign only the last waits."""

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
        """Tell whether news of a campaign are for this listener."""
        return self._account_id is None or self._account_id == advertiser_id

    def begin(self) -> None:
        """Say that from now on nothing is left out."""
        self._begins_anew = True
        self._has_news.set()

    def tell(self, campaign_id: UUID, event: bytes) -> bool:
        """Take news of a campaign; one who does not keep up with them is done, which is said by False."""
        self._waiting[campaign_id] = event
        if len(self._waiting) > self._waiting_max:
            self.end()
            return False
        self._has_news.set()
        return True

    def end(self) -> None:
        """Say nothing more."""
        self.is_over = True
        self._waiting.clear()
        self._has_news.set()

    async def said(self) -> AsyncGenerator[bytes]:
        """Give what there is to say, until it is over."""
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
            yield self._taken()
            await asyncio.sleep(PAUSE_SECONDS)

    def _taken(self) -> bytes:
        parts = [LISTENING] if self._begins_anew else []
        parts += self._waiting.values()
        self._waiting.clear()
        self._begins_anew = False
        self._has_news.clear()
        return b"".join(parts)
