"""Keeps in memory how creatives did on sites in the last hour, for the requests of a delivery process.

The worker publishes it in Valkey every few seconds. A request never waits: a site that is asked for the first time has
no results yet, and is read beside it. While Valkey is away what is known goes on being used.
"""

import asyncio
from collections import OrderedDict
from typing import Final

from adloom.core.ids import PlacementId, SiteId
from adloom.market.results.publish import read_results, read_versions
from adloom.market.results.window import NO_RESULTS, SiteResults
from adloom.runtime.loops import PollLoop
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

POLL_SECONDS: Final = 2.0
SITES_MAX: Final = (
    1_000  # At most 30 KB each; beyond, the site is forgotten that was not asked for the longest.
)


class ResultsLoader:
    """The results of sites, and of direct placements, that are asked for."""

    def __init__(self, valkey: Valkey, *, sites_max: int = SITES_MAX) -> None:
        self._valkey = valkey
        self._sites_max = sites_max
        self._sites: OrderedDict[SiteId | PlacementId, SiteResults] = (
            OrderedDict()
        )  # Least recently used first.
        # Found since the last poll, by the numbers of ids: looking for an id itself calls Python, twice.
        self._found: dict[int, SiteResults] = {}
        self._loop = PollLoop(self.refresh, every_seconds=POLL_SECONDS, away=VALKEY_AWAY, name="site_results")

    def __len__(self) -> int:
        return len(self._sites)

    def find(self, site_id: SiteId | PlacementId) -> SiteResults:
        found = self._found.get(site_id.int)
        return self._find(site_id) if found is None else found

    def _find(self, site_id: SiteId | PlacementId) -> SiteResults:
        known = self._sites.pop(site_id, None)
        if known is None:
            known = NO_RESULTS
            self._loop.noticed.set()
        self._sites[site_id] = self._found[site_id.int] = known
        if len(self._sites) > self._sites_max:
            self._found.pop(self._sites.popitem(last=False)[0].int, None)
        return known

    async def run(self, stop: asyncio.Event) -> None:
        await self._loop.run(stop)

    async def refresh(self) -> None:
        """Read what was published since."""
        self._found.clear()
        versions = await read_versions(self._valkey, list(self._sites)) if self._sites else {}
        for site_id, version in versions.items():
            known = self._sites.get(site_id)
            if known is None or known.version == version:
                continue
            newer = await read_results(self._valkey, site_id) if version else NO_RESULTS
            if site_id in self._sites:
                self._sites[site_id] = newer  # In its place: a change is no use.
                self._found.pop(site_id.int, None)
