"""Learns the shapes of days from the traffic that delivery counts, and keeps those that budgets follow."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.budgets.traffic import store
from adloom.budgets.traffic.counts import INSTALLATION, read_counts
from adloom.budgets.traffic.site_day import SiteDay, find_site_day
from adloom.budgets.traffic.store import TrafficSite
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.schedule.traffic_shape import HOURS, LearnedShape, TrafficShape, learn_hour, start_learning

POLL_SECONDS: Final = 30.0
AWAY: Final = (UnavailableError, *VALKEY_AWAY)
WHOLE_INSTALLATION: Final = TrafficSite(INSTALLATION)


class TrafficLearner:
    """Learns in the worker; `find_shape` answers from memory."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock
        self._shapes: Mapping[int, TrafficShape] = {}
        self._day_seconds: Mapping[int, int] = {}  # Of sites whose days are simulated.

    def find_shape(self, site_key: int | None) -> TrafficShape | None:
        """Return the shape of a site's traffic, or of all of it."""
        found = None if site_key is None else self._shapes.get(site_key)
        return found or self._shapes.get(INSTALLATION)

    def find_day_seconds(self, site_key: int | None) -> int | None:
        """Return how long the days of a site are, if they are simulated."""
        return None if site_key is None else self._day_seconds.get(site_key)

    async def run(self, stop: asyncio.Event) -> None:
        # Meanwhile budgets follow the shapes of before.
        await PollLoop(self.learn, every_seconds=POLL_SECONDS, away=AWAY, name="traffic_shapes").run(stop)

    async def learn(self) -> None:
        """Learn from the hours that have ended since the last time."""
        now = self._clock.now()
        sites = await store.read_sites(self._pool)
        known = await store.read_learned(self._pool)
        changed: dict[int, LearnedShape] = {}
        for site in (WHOLE_INSTALLATION, *sites):
            before = known.get(site.key)
            if before is None or before.seeds != (site.weekday, site.weekend):
                before = start_learning(site.weekday, site.weekend)
            after = await self._learn_site(site, before, now)
            if after != known.get(site.key):
                changed[site.key] = after
        if changed:
            await store.write_learned(self._pool, changed)
        self._shapes = store.build_shapes(sites, known | changed)
        self._day_seconds = {
            site.key: site.day_seconds for site in sites if site.day_seconds < WHOLE_INSTALLATION.day_seconds
        }

    async def _learn_site(self, site: TrafficSite, learned: LearnedShape, now: datetime) -> LearnedShape:
        today = find_site_day(now, timezone=site.timezone, day_seconds=site.day_seconds)
        yesterday = _find_day_before(site, today)
        if learned.day is not None and learned.day > today.ends:
            # It was counted while a clock was days ahead: nothing would be learned until then.
            learned = msgspec.structs.replace(learned, day=None, counts=())
        for day in (yesterday, today):
            ended = day.find_hour(now.timestamp()) if day is today else HOURS
            if ended == 0 or (learned.day, len(learned.counts)) == (day.starts, ended):
                continue
            if learned.day is not None and day.starts < learned.day:
                continue
            counts = await read_counts(self._valkey, site.key, day)
            if learned.day != day.starts and not any(hour.requests for hour in counts):
                continue  # There were no visitors, or no worker counted them.
            for hour in range(len(learned.counts) if learned.day == day.starts else 0, ended):
                requests = counts[hour].requests
                if learned.day is None and not requests:
                    continue  # Before the first request that was ever counted.
                learned = learn_hour(
                    learned, day=day.starts, is_weekend=day.is_weekend, hour=hour, requests=requests
                )
        return learned


def _find_day_before(site: TrafficSite, day: SiteDay) -> SiteDay:
    before = datetime.fromtimestamp(day.starts - 1, UTC)
    return find_site_day(before, timezone=site.timezone, day_seconds=site.day_seconds)
