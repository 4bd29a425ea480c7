"""Records what delivery has counted of contextual slots and pages, for simulated markets."""

import asyncio
from datetime import UTC, timedelta
from typing import Final

import structlog

from adloom.budgets.traffic.page_counts import iter_page_counts, read_slot_counts
from adloom.budgets.traffic.page_store import forget_requests, write_page_requests, write_slot_requests
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.loops import pause
from adloom.runtime.postgres import Pool, unavailable_when_away
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

RECORD_SECONDS: Final = 300.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PageTrafficRecorder:
    """Copies the counts of yesterday and today from Valkey to PostgreSQL."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.record()
            except (UnavailableError, *VALKEY_AWAY) as error:
                log.warning("page_traffic_waits", reason=repr(error))
            except Exception:
                # The outermost loop: the next turn writes the same and more.
                log.exception("page_traffic_failed")
            await pause(RECORD_SECONDS, stop)

    async def record(self) -> None:
        """Write what was counted; what was written before is not written again."""
        now = self._clock.now().astimezone(UTC)
        today = now.date()
        with unavailable_when_away("Requests of pages cannot be written"):
            for day in (today - timedelta(days=1), today):
                slots = await read_slot_counts(self._valkey, day)
                if not slots:
                    continue
                await write_slot_requests(self._pool, slots)
                async for pages in iter_page_counts(self._valkey, day):
                    await write_page_requests(self._pool, day, pages)
            await forget_requests(self._pool, now)
