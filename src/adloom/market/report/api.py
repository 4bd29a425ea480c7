"""A site's market over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from adloom.auction.site_modes import FloorMode
from adloom.catalog.site.resource import sites
from adloom.core.money import decimal_from_micros
from adloom.market.report.store import read_market
from adloom.resource.api import PublisherReads
from adloom.runtime.http.api.dependencies import Database, Now, guarded_router
from adloom.runtime.http.api.shapes import Answer
from adloom.taxonomy.iab import content


class MarketCategoryAnswer(Answer):
    """A category of the site's pages: who bids on it, and how ads did there; figures fade with a half-life of a week."""

    id: str
    name: str
    campaigns: int
    pages: int
    impressions: float
    clicks: float
    weight: float
    floor_cpm: float


class SiteFloorAnswer(Answer):
    """The least that a thousand impressions must be worth on the site."""

    mode: FloorMode
    floor_cpm: float
    min_floor_cpm: float


class SiteDemandAnswer(Answer):
    """When the demand of campaigns changed last, and its version."""

    updated_at: datetime | None
    version: int


class SiteMarketAnswer(Answer):
    """What a site sells, and who wants it."""

    categories: Sequence[MarketCategoryAnswer]
    floor: SiteFloorAnswer
    demand: SiteDemandAnswer


router = guarded_router("/admin/sites/{site_id}", "market", 401, 403, 404)


@router.get("/market")
async def read_site_market(
    site_id: UUID, scope: PublisherReads, pool: Database, now: Now
) -> SiteMarketAnswer:
    """Read what the pages of a site are worth to whom."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        market = await read_market(connection, site.id, now=now)
    floor = float(decimal_from_micros(site.floor_cpm_micros))
    return SiteMarketAnswer(
        categories=[
            MarketCategoryAnswer(
                id=one.id,
                name=node.name if (node := content().find(one.id)) else one.id,
                campaigns=one.campaigns,
                pages=one.pages,
                impressions=one.impressions,
                clicks=one.clicks,
                weight=round(one.weight, 4),
                floor_cpm=floor,
            )
            for one in market.categories
        ],
        floor=SiteFloorAnswer(
            mode=site.floor_mode,
            floor_cpm=floor,
            min_floor_cpm=float(decimal_from_micros(site.min_floor_cpm_micros)),
        ),
        demand=SiteDemandAnswer(updated_at=market.changed_at, version=market.version),
    )
