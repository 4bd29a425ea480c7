"""Reads a site's market: the categories of its pages, who bids on them, how they did, and where their floors are."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.floor_sweep import SweepState
from adloom.core.ids import SiteId
from adloom.core.money import Micros
from adloom.market.report.reach import CategoryDemandSummary, sum_up_demand
from adloom.market.routing import EVERYWHERE
from adloom.market.site_store import load_sites, read_site_floors
from adloom.market.store import load_demands
from adloom.market.weights import DecayingCounts, blend, compute_expected_weight
from adloom.runtime.postgres import Connection
from adloom.taxonomy.iab import OfContentNode, load_content

# Pages count under each of their own categories.
PAGES: Final = """
    SELECT category ->> 'id' AS id, count(*) AS pages
      FROM site_pages AS page, jsonb_array_elements(page.categories) AS category
     WHERE page.site_id = (SELECT id FROM sites WHERE public_id = $1) AND page.expires_at > $2
     GROUP BY 1
"""
VERSION: Final = "SELECT coalesce(sum(version), 0)::bigint, max(changed_at) FROM demand_versions"
RESULTS: Final = """
    SELECT category, site, impressions, clicks, at FROM category_results
     WHERE site = ANY ($1::text[]) AND category = ANY ($2::text[])
"""


class MarketCategory(OfContentNode, frozen=True, kw_only=True):
    """A category on a site: campaigns that want it, pages that have it, and how ads did there."""

    pages: int
    demand: CategoryDemandSummary
    impressions: float
    clicks: float
    weight: float
    floor: Micros
    sweep: SweepState | None  # Where floors move: the evidence.


class SiteMarket(msgspec.Struct, frozen=True, kw_only=True):
    """A site's market, and the version of all demand."""

    categories: tuple[MarketCategory, ...]
    version: int
    changed_at: datetime | None


async def read_market(connection: Connection, site_id: SiteId, *, now: datetime) -> SiteMarket:
    """Read the categories of a site's pages, those with most pages first."""
    pages = {row["id"]: row["pages"] for row in await connection.fetch(PAGES, site_id, now)}
    site = (await load_sites(connection, [site_id]))[site_id]
    taxonomy = load_content()
    wanted = sorted({node for one in pages for node in (one, *taxonomy.list_ancestors(one))})
    demands = await load_demands(connection, wanted)
    demand = sum_up_demand(pages, demands, site, taxonomy.list_ancestors)
    counts = await _read_counts(connection, site_id, pages, now=now)
    sweeps = (await read_site_floors(connection, site_id)).by_category if site.terms.is_sweeping else {}
    version, changed_at = await connection.fetchrow(VERSION) or (0, None)
    return SiteMarket(
        categories=tuple(
            MarketCategory(
                id=category,
                pages=count,
                demand=demand[category],
                impressions=round(counts[category][0].impressions, 1),
                clicks=round(counts[category][0].clicks, 1),
                weight=compute_expected_weight(blend(*counts[category])),
                floor=site.terms.find_floor(category),
                sweep=sweeps.get(category),
            )
            for category, count in sorted(pages.items(), key=lambda one: (-one[1], one[0]))
        ),
        version=version,
        changed_at=changed_at,
    )


async def read_weights(
    connection: Connection, site_id: SiteId, categories: Sequence[str], *, now: datetime
) -> Mapping[str, float]:
    """Read how well categories do on a site, as is expected of what auctions draw."""
    counts = await _read_counts(connection, site_id, categories, now=now)
    return {category: compute_expected_weight(blend(*found)) for category, found in counts.items()}


async def _read_counts(
    connection: Connection, site_id: SiteId, categories: Iterable[str], *, now: datetime
) -> dict[str, tuple[DecayingCounts, DecayingCounts]]:
    """Read the counts of categories on a site, and on all sites."""
    nothing = DecayingCounts()
    found = dict.fromkeys(categories, (nothing, nothing))
    rows = await connection.fetch(RESULTS, [str(site_id), EVERYWHERE], list(found))
    for category, site, impressions, clicks, at in rows:
        counts = DecayingCounts(impressions, clicks, at).decay(now)
        own, everywhere = found[category]
        found[category] = (own, counts) if site == EVERYWHERE else (counts, everywhere)
    return found
