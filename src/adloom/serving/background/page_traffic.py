"""Counts the requests of contextual slots by page, and adds them to Valkey every few seconds.

What a process has counted and not added yet is lost with it; so are counts while Valkey is away for long.
"""

import asyncio
from datetime import UTC, date
from typing import Final

import structlog

from adloom.budgets.traffic.page_counts import SlotCounts, add_page_counts
from adloom.core.clock import Clock
from adloom.runtime.loops import pause
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

ADD_SECONDS: Final = 5.0
# Of a day, by slot: beyond, requests count for the slot only, and simulations take them to be like the others.
PAGES_A_DAY_MAX: Final = 20_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class PageTraffic:
    """Counts by slot, and by slot and page."""

    def __init__(self, valkey: Valkey, clock: Clock, *, pages_a_day_max: int = PAGES_A_DAY_MAX) -> None:
        self._valkey = valkey
        self._clock = clock
        self._pages_a_day_max = pages_a_day_max
        self._slots: dict[int, SlotCounts] = {}
        self._pages: dict[tuple[int, str], int] = {}
        self._day = date.min
        self._pages_of_day: set[tuple[int, str]] = set()

    def count(self, placement_key: int, url: str, *, is_filled: bool) -> None:
        """Count a request from a page that is classified."""
        counts = self._slots.get(placement_key)
        if counts is None:
            counts = self._slots[placement_key] = SlotCounts()
        counts.requests += 1
        counts.filled += is_filled
        page = placement_key, url
        known = self._pages.get(page)
        if known is not None:
            self._pages[page] = known + 1
        elif len(self._pages) < self._pages_a_day_max:
            self._pages[page] = 1

    async def run(self, stop: asyncio.Event) -> None:
        is_away = False
        while not stop.is_set():
            await pause(ADD_SECONDS, stop)
            try:
                await self.add()
                is_away = False
            except VALKEY_AWAY as error:
                if not is_away:
                    log.warning("page_traffic_waits", reason=repr(error))
                is_away = True

    async def add(self) -> None:
        """Add what was counted since the last time."""
        if not self._slots:
            return
        now = self._clock.now().astimezone(UTC)
        if now.date() != self._day:
            self._day, self._pages_of_day = now.date(), set()
        slots, self._slots = self._slots, {}
        pages, self._pages = self._pages, {}
        of_day = self._pages_of_day
        for page in pages:
            if len(of_day) < self._pages_a_day_max:
                of_day.add(page)
        kept = {page: requests for page, requests in pages.items() if page in of_day}
        try:
            await add_page_counts(self._valkey, slots, kept, now)
        except VALKEY_AWAY:
            for placement_key, counts in slots.items():
                known = self._slots.setdefault(placement_key, SlotCounts())
                known.requests += counts.requests
                known.filled += counts.filled
            for page, requests in kept.items():
                self._pages[page] = self._pages.get(page, 0) + requests
            raise
