"""Publishes how banners do on direct placements that let the better one win, for delivery: as results of sites are.

The counts are those of the statistics, without invalid events, of the last thirty days. Hours that are over are read
once an hour, the last ones at every poll. It runs on the one worker that leads the market.
"""

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.core.clock import Clock
from adloom.core.ids import PlacementId
from adloom.market.results import store
from adloom.market.results.publish import publish_results
from adloom.market.results.store import PlacementCounts
from adloom.market.results.window import build_results
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Pool, raise_if_away
from adloom.runtime.valkey import ANYTHING_AWAY, Valkey

POLL_SECONDS: Final = 5.0
LEARNED_FROM: Final = timedelta(days=30)
LAST_HOURS: Final = timedelta(hours=2)
PUBLISH_ALL: Final = timedelta(minutes=1)  # Valkey may have lost what it had.


class PlacementResultsFollower:
    """Follows the counts of the placements on which the better banner wins."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock
        self._loop = PollLoop(
            self._poll, every_seconds=POLL_SECONDS, away=ANYTHING_AWAY, name="placement_results"
        )
        self._begin()

    def _begin(self) -> None:
        self._older: tuple[datetime, Collection[int], PlacementCounts] | None = None
        self._published: PlacementCounts = {}
        self._publish_all_at = datetime.min.replace(tzinfo=UTC)

    async def run(self, stop: asyncio.Event) -> None:
        self._begin()
        await self._loop.run(stop)

    async def _poll(self) -> None:
        with raise_if_away("The counts of placements cannot be read"):
            await self.poll()

    async def poll(self) -> None:
        """Publish what has changed since the last poll."""
        now = self._clock.now()
        keys = await store.list_learning_placements(self._pool)
        split = now.replace(minute=0, second=0, microsecond=0) - LAST_HOURS
        if self._older is None or self._older[:2] != (split, keys):
            since = split - LEARNED_FROM
            self._older = split, keys, await store.count_on_placements(self._pool, keys, since, split)
        counts = sum_counts(
            self._older[2], await store.count_on_placements(self._pool, keys, split, now + LAST_HOURS)
        )
        await self._publish(counts, now)

    async def _publish(self, counts: PlacementCounts, now: datetime) -> None:
        is_all = now >= self._publish_all_at
        changed = {
            placement_id: banners
            for placement_id, banners in counts.items()
            if is_all or banners != self._published.get(placement_id)
        }
        version = int(now.timestamp() * 1_000)
        await publish_results(
            self._valkey, {one: build_results(banners, version) for one, banners in changed.items()}
        )
        self._published = counts
        if is_all:
            self._publish_all_at = now + PUBLISH_ALL


def sum_counts(one: PlacementCounts, other: PlacementCounts) -> PlacementCounts:
    """Return the sums of impressions and clicks by placement and banner."""
    sums: dict[PlacementId, dict[int, tuple[int, int]]] = {}
    for counts in (one, other):
        for placement_id, banners in counts.items():
            known = sums.setdefault(placement_id, {})
            for key, (impressions, clicks) in banners.items():
                before = known.get(key, (0, 0))
                known[key] = before[0] + impressions, before[1] + clicks
    return sums
