"""Reads what a campaign's contextual reach is made of: its creatives, and the sites with pages that it wants."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.auction.bid import BidType
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.catalog.campaign.model import Campaign
from adloom.core.ids import BannerId, SiteId
from adloom.core.money import Micros
from adloom.market.report.reach import CampaignReach, OfferedSite, find_reach, group_pages
from adloom.market.site_store import load_sites
from adloom.runtime.postgres import Connection
from adloom.targeting.values import find_landing_domain
from adloom.taxonomy.iab import load_content
from adloom.taxonomy.topics import FILLER

SITES_MAX: Final = 1_000  # Those with most pages; more than anybody reads.

CREATIVES: Final = """
    SELECT banner.public_id AS banner_id, banner.width, banner.height, banner.cta_url
      FROM creatives AS creative
      JOIN campaigns AS campaign ON campaign.id = creative.campaign_id
      JOIN banners AS banner ON banner.id = creative.banner_id
     WHERE campaign.public_id = $1 AND banner.deleted_at IS NULL AND banner.is_active
     ORDER BY banner.id
"""
BLOCKED_SITES: Final = "SELECT blocked_sites FROM advertisers WHERE public_id = $1"
# Pages count under those of their own categories that the campaign wants; those without any under none.
PAGES: Final = """
    WITH matched AS (
        SELECT page.site_id, ARRAY(
                   SELECT category ->> 'id' FROM jsonb_array_elements(page.categories) AS category
                    WHERE category ->> 'id' = ANY ($1::text[]) ORDER BY 1
               ) AS own, page.categories = '[]' AS is_unmatched,
               EXISTS (SELECT FROM jsonb_array_elements(page.categories) AS category
                        WHERE category ->> 'id' = ANY ($4::text[])) AS is_excluded
          FROM site_pages AS page
         WHERE page.expires_at > $2
    )
    SELECT site.public_id AS site_id, matched.own, count(*) AS pages, matched.is_excluded
      FROM matched JOIN sites AS site ON site.id = matched.site_id
     WHERE cardinality(matched.own) > 0 OR ($3 AND matched.is_unmatched AND site.accepts_filler)
     GROUP BY 1, 2, 4
"""


async def read_reach(
    connection: Connection, campaign: Campaign, *, now: datetime, multiplier: float = 1.0
) -> CampaignReach | None:
    """Find out where a campaign reaches, whatever its status; None if it wants no contextual slots.

    Its bid is taken times the `multiplier` of its strategy.
    """
    if not campaign.categories and not campaign.bids_on_unmatched:
        return None
    demand = await _read_demand(connection, campaign)
    demand = msgspec.structs.replace(demand, max_cpm=Micros(int(demand.max_cpm * min(1.0, multiplier))))
    taxonomy = load_content()
    wanted: dict[str, list[str]] = {FILLER: [FILLER]}
    for category in campaign.categories:
        for node in (category, *taxonomy.list_descendants(category)):
            wanted.setdefault(node, []).append(category)
    excluded = [
        node for one in campaign.excluded_categories for node in (one, *taxonomy.list_descendants(one))
    ]
    found: dict[SiteId, list[tuple[Sequence[str], int, bool]]] = {}
    rows = await connection.fetch(PAGES, list(wanted), now, campaign.bids_on_unmatched, excluded)
    for site_id, own, pages, is_excluded in rows:
        found.setdefault(SiteId(site_id), []).append((own or [FILLER], pages, is_excluded))
    largest = sorted(found, key=lambda site_id: -sum(pages for _, pages, _ in found[site_id]))[:SITES_MAX]
    configured = await load_sites(connection, largest)
    return find_reach(
        demand,
        (
            OfferedSite(
                site_id=site_id,
                terms=one.terms,
                approvals=one.approvals,
                groups=group_pages(found[site_id], wanted),
            )
            for site_id, one in configured.items()
        ),
    )


async def _read_demand(connection: Connection, campaign: Campaign) -> CampaignDemand:
    """Read a campaign as bidders would know it if it were active; one that bids by click has no bid."""
    blocked = await connection.fetchval(BLOCKED_SITES, campaign.advertiser_id)
    bid = campaign.bid_amount_micros if campaign.bid_type is BidType.CPM else None
    return CampaignDemand(
        campaign_id=campaign.id,
        advertiser_id=campaign.advertiser_id,
        version=0,
        max_cpm=Micros(bid or 0),
        categories=campaign.categories,
        creatives=tuple(
            WantedCreative(BannerId(banner_id), width, height, find_landing_domain(address))
            for banner_id, width, height, address in await connection.fetch(CREATIVES, campaign.id)
        ),
        takes_filler=campaign.bids_on_unmatched,
        product_category=campaign.ad_product_category,
        blocked_domains=frozenset(blocked or ()),
        excluded_categories=frozenset(campaign.excluded_categories),
    )
