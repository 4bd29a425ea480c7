"""Reads a site's market: the categories of its pages, who bids on them, and how they did."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.market.routing import EVERYWHERE
from adloom.market.weights import DecayingCounts, blend, expected_weight
from adloom.runtime.postgres import Connection

# Pages count under each of their own categories.
PAGES: Final = """
    SELECT category ->> 'id' AS id, count(*) AS pages
      FROM site_pages AS page, jsonb_array_elements(page.categories) AS category
     WHERE page.site_id = (SELECT id FROM sites WHERE public_id = $1) AND page.expires_at > $2
     GROUP BY 1
"""
DEMAND: Final = """
    SELECT category, count(*) AS campaigns
      FROM contextual_demand, jsonb_array_elements_text(demand -> 'wanted') AS category
     WHERE demand IS NOT NULL
     GROUP BY 1
"""
VERSION: Final = "SELECT coalesce(sum(version), 0)::bigint, max(changed_at) FROM demand_versions"
RESULTS: Final = """
    SELECT category, site, impressions, clicks, at FROM category_results WHERE site = ANY ($1::text[])
"""


class MarketCategory(msgspec.Struct, frozen=True, kw_only=True):
    """A category on a site: campaigns that want it, pages that have it, and how ads did there."""

    id: str
    campaigns: int
    pages: int
    impressions: float
    clicks: float
    weight: float


class SiteMarket(msgspec.Struct, frozen=True, kw_only=True):
    """A site's market, and the version of all demand."""

    categories: tuple[MarketCategory, ...]
    version: int
    changed_at: datetime | None


async def read_market(connection: Connection, site_id: SiteId, *, now: datetime) -> SiteMarket:
    """Read the categories of a site's pages, those with most pages first."""
    pages = {row["id"]: row["pages"] for row in await connection.fetch(PAGES, site_id, now)}
    campaigns = {row["category"]: row["campaigns"] for row in await connection.fetch(DEMAND)}
    own: dict[str, DecayingCounts] = {}
    everywhere: dict[str, DecayingCounts] = {}
    for category, site, impressions, clicks, at in await connection.fetch(
        RESULTS, [str(site_id), EVERYWHERE]
    ):
        counts = DecayingCounts(impressions, clicks, at).at_moment(now)
        (everywhere if site == EVERYWHERE else own)[category] = counts
    version, changed_at = await connection.fetchrow(VERSION) or (0, None)
    nothing = DecayingCounts()
    return SiteMarket(
        categories=tuple(
            MarketCategory(
                id=category,
                campaigns=campaigns.get(category, 0),
                pages=count,
                impressions=round(own.get(category, nothing).impressions, 1),
                clicks=round(own.get(category, nothing).clicks, 1),
                weight=expected_weight(blend(own.get(category, nothing), everywhere.get(category, nothing))),
            )
            for category, count in sorted(pages.items(), key=lambda one: (-one[1], one[0]))
        ),
        version=version,
        changed_at=changed_at,
    )
