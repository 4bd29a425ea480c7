"""Counts the requests of contextual slots by page, and adds them to Valkey every few seconds.

What a process has counted and not added yet is lost with it; so are counts while Valkey is away for long.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, date
from typing import Final

from adloom.budgets.traffic.page_counts import SlotCounts, add_page_counts
from adloom.core.clock import Clock
from adloom.runtime.loops import PollLoop
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

ADD_SECONDS: Final = 5.0
# Of a day, by slot: beyond, requests count for the slot only, and simulations take them to be like the others.
PAGES_A_DAY_MAX: Final = 20_000
NO_PAGE: Final = ""


class PageTraffic:
    """Counts by slot, and by slot and page."""

    def __init__(self, valkey: Valkey, clock: Clock, *, pages_a_day_max: int = PAGES_A_DAY_MAX) -> None:
        self._valkey = valkey
        self._clock = clock
        self._pages_a_day_max = pages_a_day_max
        self._pages: dict[tuple[int, str], SlotCounts] = {}
        self._day = date.min
        self._pages_of_day: set[tuple[int, str]] = set()

    def count(self, placement_key: int, url: str, *, is_filled: bool) -> None:
        """Count a request from a page that is classified."""
        counts = self._pages.get((placement_key, url))
        if counts is None:
            page = placement_key, url if len(self._pages) < self._pages_a_day_max else NO_PAGE
            counts = self._pages.setdefault(page, SlotCounts())
        counts.requests += 1
        if is_filled:
            counts.filled += 1

    async def run(self, stop: asyncio.Event) -> None:
        adding = PollLoop(self.add, every_seconds=ADD_SECONDS, away=VALKEY_AWAY, name="page_traffic")
        await adding.run(stop)
        await adding.try_to_poll()  # What was counted since the last time.

    async def add(self) -> None:
        """Add what was counted since the last time."""
        if not self._pages:
            return
        now = self._clock.now().astimezone(UTC)
        if now.date() != self._day:
            self._day, self._pages_of_day = now.date(), set()
        pages, self._pages = self._pages, {}
        slots: dict[int, SlotCounts] = {}
        for (placement_key, _), counts in pages.items():
            _add(slots.setdefault(placement_key, SlotCounts()), counts)
        try:
            await add_page_counts(self._valkey, slots, self._keep_some(pages), now)
        except VALKEY_AWAY:
            for page, counts in pages.items():
                _add(self._pages.setdefault(page, SlotCounts()), counts)
            raise

    def _keep_some(self, pages: Mapping[tuple[int, str], SlotCounts]) -> dict[tuple[int, str], int]:
        """Return the requests of pages, as far as the day has room for them."""
        of_day = self._pages_of_day
        for page in pages:
            if page[1] and len(of_day) < self._pages_a_day_max:
                of_day.add(page)
        return {page: counts.requests for page, counts in pages.items() if page in of_day}


def _add(to: SlotCounts, more: SlotCounts) -> None:
    to.requests += more.requests
    to.filled += more.filled
