"""Impressions and clicks of creatives in the last hour, by site and minute, and as delivery reads them."""

# pure

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.auction.creative_choice import CLICK_RATE_DEFAULT
from adloom.core.ids import SiteId
from adloom.market.messages import RecordResults
from adloom.market.routing import EVERYWHERE, make_ranker_address
from adloom.runtime.actors.actor import Address

WINDOW: Final = timedelta(minutes=60)
BANNERS_MAX: Final = 2_000  # Of a site: those with most impressions; 30 KB.
# A site's own click rate counts as much as what is assumed of all sites from so many impressions on.
SITE_PRIOR_IMPRESSIONS: Final = 1_000
CLICK_RATE_MIN: Final = 0.0001

Counts = Mapping[int, tuple[int, int]]


class ResultRow(msgspec.Struct, frozen=True):
    """What a batch of the event log has added of a creative on a site in a minute."""

    id: int
    site_id: SiteId
    banner_key: int
    category: str
    minute: datetime
    impressions: int
    clicks: int
    batch: int = 0  # A reader of the table finds all rows of a batch or none.


class SiteResults(msgspec.Struct, frozen=True):
    """Impressions and clicks of the last hour on a site by creative; a later version replaces it whole."""

    version: int = 0
    banners: dict[int, tuple[int, int]] = {}
    click_rate: float = CLICK_RATE_DEFAULT

    def __len__(self) -> int:
        return len(self.banners)


NO_RESULTS: Final = SiteResults()


def build_results(banners: Counts, version: int = 0) -> SiteResults:
    """Keep the creatives with most impressions; the click rate is that of all."""
    impressions = sum(one[0] for one in banners.values())
    clicks = min(sum(one[1] for one in banners.values()), impressions)
    rate = (clicks + CLICK_RATE_DEFAULT * SITE_PRIOR_IMPRESSIONS) / (impressions + SITE_PRIOR_IMPRESSIONS)
    kept = sorted(banners.items(), key=lambda one: (-one[1][0], -one[1][1], one[0]))[:BANNERS_MAX]
    return SiteResults(version, dict(kept), max(CLICK_RATE_MIN, rate))


class ResultWindows:
    """The last hour of all sites, in minutes; sites without results in it take no memory."""

    def __init__(self) -> None:
        self._sites: dict[SiteId, dict[datetime, dict[int, tuple[int, int]]]] = {}
        self._changed: set[SiteId] = set()

    def __len__(self) -> int:
        return len(self._sites)

    def add(self, rows: Iterable[ResultRow]) -> None:
        for row in rows:
            minute = self._sites.setdefault(row.site_id, {}).setdefault(row.minute, {})
            impressions, clicks = minute.get(row.banner_key, (0, 0))
            minute[row.banner_key] = impressions + row.impressions, clicks + row.clicks
            self._changed.add(row.site_id)

    def drop_old(self, now: datetime) -> None:
        for site_id, minutes in list(self._sites.items()):
            for minute in [one for one in minutes if one <= now - WINDOW]:
                del minutes[minute]
                self._changed.add(site_id)
            if not minutes:
                del self._sites[site_id]

    def mark_all(self) -> None:
        """Have all sites published again, in case what was published is lost."""
        self._changed.update(self._sites)

    def take_changed(self) -> dict[SiteId, Counts]:
        """Return the sums of sites that have changed since the last call; nothing is left of some."""
        changed, self._changed = self._changed, set()
        return {site_id: self.sum_up(site_id) for site_id in changed}

    def sum_up(self, site_id: SiteId) -> Counts:
        sums: dict[int, tuple[int, int]] = {}
        for minute in self._sites.get(site_id, {}).values():
            for banner_key, (impressions, clicks) in minute.items():
                known = sums.get(banner_key, (0, 0))
                sums[banner_key] = known[0] + impressions, known[1] + clicks
        return sums


def sum_for_rankers(rows: Iterable[ResultRow]) -> list[tuple[Address, RecordResults]]:
    """Return what each ranker is sent: by batch the sum of its rows, and the last of them.

    A ranker that wakes reads the table: it knows some batches already, and drops these.
    """
    told: dict[tuple[str, str, int], RecordResults] = {}
    for row in rows:
        for where in (str(row.site_id), EVERYWHERE):
            known = told.get((row.category, where, row.batch))
            told[row.category, where, row.batch] = RecordResults(
                row.impressions + (known.impressions if known else 0),
                row.clicks + (known.clicks if known else 0),
                max(row.minute, known.at) if known else row.minute,
                row.id,
            )
    return [(make_ranker_address(category, where), message) for (category, where, _), message in told.items()]
