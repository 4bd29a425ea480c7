"""Counts the requests of each site, and adds them to Valkey every few seconds: pacing learns from them.

What a process has counted and not added yet is lost with it; so are counts while Valkey is away for long.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from adloom.budgets.traffic.counts import INSTALLATION, HourCounts, add_counts
from adloom.budgets.traffic.site_day import DAY_SECONDS, SiteDay, find_site_day
from adloom.core.clock import Clock
from adloom.runtime.loops import pause
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.serving.index.index import Index
from adloom.serving.leases.local_leases import LocalLeases

ADD_SECONDS: Final = 2.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SiteTraffic:
    """Counts by site. Each answer is counted after its offers were drawn, so what was left out since the last is its own."""

    def __init__(self, valkey: Valkey, clock: Clock, leases: LocalLeases, index: Callable[[], Index]) -> None:
        self._valkey = valkey
        self._clock = clock
        self._leases = leases
        self._index = index
        self._counts: dict[int | None, HourCounts] = {}
        self._left_out = 0

    def count(self, site_key: int | None, offers: int) -> None:
        """Count an answer with some offers or none; a placement without a site counts for the installation only."""
        counts = self._counts.get(site_key)
        if counts is None:
            counts = self._counts[site_key] = HourCounts()
        counts.requests += 1
        if offers:
            counts.served += 1
        left_out = self._leases.left_out
        if left_out != self._left_out:
            counts.throttled += left_out - self._left_out
            self._left_out = left_out

    async def run(self, stop: asyncio.Event) -> None:
        is_away = False
        while not stop.is_set():
            await pause(ADD_SECONDS, stop)
            try:
                await self.add()
                is_away = False
            except VALKEY_AWAY as error:
                if not is_away:
                    log.warning("site_traffic_waits", reason=repr(error))
                is_away = True

    async def add(self) -> None:
        """Add what was counted since the last time."""
        counted, self._counts = self._counts, {}
        if not counted:
            return
        try:
            await add_counts(self._valkey, self._place(counted))
        except VALKEY_AWAY:
            for site_key, counts in counted.items():
                _add(self._counts.setdefault(site_key, HourCounts()), counts)
            raise

    def _place(self, counted: dict[int | None, HourCounts]) -> dict[int, tuple[SiteDay, int, HourCounts]]:
        """Find the hour of each site's own day."""
        now, sites = self._clock.now(), self._index().sites.by_key
        day = find_site_day(now, timezone="UTC", day_seconds=DAY_SECONDS)
        total = HourCounts()
        placed = {INSTALLATION: (day, day.find_hour(now.timestamp()), total)}
        for site_key, counts in counted.items():
            _add(total, counts)
            site = None if site_key is None else sites.get(site_key)
            if site is not None:
                day = find_site_day(now, timezone=site.timezone, day_seconds=site.day_seconds)
                placed[site.key] = (day, day.find_hour(now.timestamp()), counts)
        return placed


def _add(to: HourCounts, more: HourCounts) -> None:
    to.requests += more.requests
    to.served += more.served
    to.throttled += more.throttled
