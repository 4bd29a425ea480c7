"""Counts the requests of each placement, and adds them to Valkey every few seconds, by site and by placement.

Pacing learns from those of sites; buyers are shown how often a placement is asked for. A request for an auction asks
for each placement of its market, and so for each site that these are of.

What a process has counted and not added yet is lost with it; so are counts while Valkey is away for long.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from adloom.budgets.traffic.counts import INSTALLATION, HourCounts, add_counts
from adloom.budgets.traffic.site_day import DAY_SECONDS, SiteDay, find_site_day
from adloom.core.clock import Clock
from adloom.runtime.loops import PollLoop
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.serving.auction.market import Market
from adloom.serving.index.index import Index
from adloom.serving.leases.local_leases import LocalLeases

ADD_SECONDS: Final = 2.0


class AuctionCounts(msgspec.Struct):
    """The requests of a market, what was left out of them, and by placement how many were won."""

    requests: int = 0
    throttled: int = 0
    won: Counter[int] = msgspec.field(default_factory=Counter[int])


class SiteTraffic:
    """Counts by placement. Each answer is counted after its offers were drawn, so what was left out since the last is its own."""

    def __init__(self, valkey: Valkey, clock: Clock, leases: LocalLeases, index: Callable[[], Index]) -> None:
        self._valkey = valkey
        self._clock = clock
        self._leases = leases
        self._index = index
        self._counts: dict[int, HourCounts] = {}
        self._auctions: dict[Market, AuctionCounts] = {}
        self._left_out = 0

    def count(self, placement_key: int, offers: int) -> None:
        """Count an answer with some offers or none; a placement without a site counts for the installation only."""
        counts = self._counts.get(placement_key)
        if counts is None:
            counts = self._counts[placement_key] = HourCounts()
        counts.requests += 1
        if offers:
            counts.served += 1
        left_out = self._leases.left_out
        if left_out != self._left_out:
            counts.throttled += left_out - self._left_out
            self._left_out = left_out

    def count_auction(self, market: Market, won_on: int | None) -> None:
        """Count the answer of an auction, with the placement that was won or None."""
        counts = self._auctions.get(market)
        if counts is None:
            counts = self._auctions[market] = AuctionCounts()
        counts.requests += 1
        if won_on is not None:
            won = counts.won
            won[won_on] = won.get(won_on, 0) + 1  # In a third of the time that a counter adds.
        left_out = self._leases.left_out
        if left_out != self._left_out:
            counts.throttled += left_out - self._left_out
            self._left_out = left_out

    async def run(self, stop: asyncio.Event) -> None:
        adding = PollLoop(self.add, every_seconds=ADD_SECONDS, away=VALKEY_AWAY, name="site_traffic")
        await adding.run(stop)
        await adding.try_to_poll()  # What was counted since the last time.

    async def add(self) -> None:
        """Add what was counted since the last time."""
        counted, self._counts = self._counts, {}
        auctions, self._auctions = self._auctions, {}
        if not counted and not auctions:
            return
        now = self._clock.now()
        try:
            await add_counts(
                self._valkey,
                self._place(counted, auctions, now),
                (now.date(), _sum_by_placement(counted, auctions)),
            )
        except VALKEY_AWAY:
            for placement_key, counts in counted.items():
                _add(self._counts.setdefault(placement_key, HourCounts()), counts)
            for market, more in auctions.items():
                kept = self._auctions.setdefault(market, AuctionCounts())
                kept.requests += more.requests
                kept.throttled += more.throttled
                kept.won.update(more.won)
            raise

    def _place(
        self, counted: Mapping[int, HourCounts], auctions: Mapping[Market, AuctionCounts], now: datetime
    ) -> dict[int, tuple[SiteDay, int, HourCounts]]:
        """Sum by site, and find the hour of each site's own day."""
        index = self._index()
        day = find_site_day(now, timezone="UTC", day_seconds=DAY_SECONDS)
        total = HourCounts()
        placed = {INSTALLATION: (day, day.find_hour(now.timestamp()), total)}
        by_site: dict[int, HourCounts] = {}
        for placement_key, counts in counted.items():
            _add(total, counts)
            placement = index.by_key.get(placement_key)
            if placement is not None and placement.site_key is not None:
                _add(by_site.setdefault(placement.site_key, HourCounts()), counts)
        for market, auction in auctions.items():
            _add(total, HourCounts(auction.requests, auction.won.total(), auction.throttled))
            for site_key, won in _sum_by_site(market, auction.won).items():
                counts = HourCounts(auction.requests, won, auction.throttled)
                _add(by_site.setdefault(site_key, HourCounts()), counts)
        for site_key, counts in by_site.items():
            site = index.sites.by_key.get(site_key)
            if site is not None:
                day = find_site_day(now, timezone=site.timezone, day_seconds=site.day_seconds)
                placed[site_key] = (day, day.find_hour(now.timestamp()), counts)
        return placed


def _sum_by_placement(
    counted: Mapping[int, HourCounts], auctions: Mapping[Market, AuctionCounts]
) -> Counter[int]:
    requests = Counter({placement_key: counts.requests for placement_key, counts in counted.items()})
    for market, counts in auctions.items():
        for placement in market.placements:
            requests[placement.key] += counts.requests
    return requests


def _sum_by_site(market: Market, won: Mapping[int, int]) -> Counter[int]:
    """Return the sites of a market, with how many auctions were won on each."""
    found = Counter[int]()
    for placement in market.placements:
        if placement.site_key is not None:
            found[placement.site_key] += won.get(placement.key, 0)
    return found


def _add(to: HourCounts, more: HourCounts) -> None:
    to.requests += more.requests
    to.served += more.served
    to.throttled += more.throttled
