"""A site's market over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from pydantic import Field

from adloom.auction.floor_sweep import SweepPhase, SweepState
from adloom.auction.site_modes import FloorMode
from adloom.catalog.site import sites
from adloom.market.report.store import MarketCategory, read_market
from adloom.resource.access import Scope
from adloom.resource.api import PublisherReads
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer


class MarketCategoryAnswer(Answer):
    """A category of the site's pages: who bids on it, and how ads did there; figures fade with a half-life of a week."""

    id: str
    name: str
    campaigns: Annotated[int, Field(description="That want it, or a category above it.")]
    bidding: Annotated[int, Field(description="Those of them that may be shown.")]
    pending: Annotated[int, Field(description="Those that wait for approval.")]
    removed: Annotated[Mapping[str, int], Field(description="The others, by what keeps them away.")]
    highest_cpm: Annotated[
        PriceShown | None,
        Field(
            description="The highest bid of those that may be shown; null for a publisher: bids are the advertisers'."
        ),
    ]
    pages: int
    impressions: float
    clicks: float
    weight: float
    floor_cpm: PriceShown


class TriedFloorAnswer(Answer):
    """A floor that was tried, and what it brought."""

    floor_cpm: PriceShown
    ticks: Annotated[int, Field(description="Quarters of an hour for which it was the floor.")]
    impressions: int
    revenue: PriceShown


class SweepAnswer(Answer):
    """A floor that moves: what it does now, and the evidence for it."""

    category: str
    name: str
    phase: SweepPhase
    floor_cpm: PriceShown
    ticks_left: Annotated[int, Field(description="Quarters of an hour until other floors are tried again.")]
    tried: Sequence[TriedFloorAnswer]


class SiteFloorAnswer(Answer):
    """The least that a thousand impressions must be worth on the site; `sweeps` are floors that move."""

    mode: FloorMode
    floor_cpm: PriceShown
    min_floor_cpm: PriceShown
    sweeps: Sequence[SweepAnswer]


class SiteDemandAnswer(Answer):
    """When the demand of campaigns changed last, and its version."""

    updated_at: datetime | None
    version: int


class SiteMarketAnswer(Answer):
    """What a site sells, and who wants it."""

    categories: Sequence[MarketCategoryAnswer]
    floor: SiteFloorAnswer
    demand: SiteDemandAnswer


router = make_router("/admin/sites/{site_id}", "market", 400, 401, 403, 404)


@router.get("/market")
async def read_site_market(
    site_id: UUID, scope: PublisherReads, pool: Database, now: Now
) -> SiteMarketAnswer:
    """Read what the pages of a site are worth to whom."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        market = await read_market(connection, site.id, now=now)
    return SiteMarketAnswer(
        categories=[_show_category(one, scope) for one in market.categories],
        floor=SiteFloorAnswer(
            mode=site.floor_mode,
            floor_cpm=site.floor_cpm_micros,
            min_floor_cpm=site.min_floor_cpm_micros,
            sweeps=[_show_sweep(one, one.sweep) for one in market.categories if one.sweep is not None],
        ),
        demand=SiteDemandAnswer(updated_at=market.changed_at, version=market.version),
    )


def _show_category(one: MarketCategory, scope: Scope) -> MarketCategoryAnswer:
    shown = msgspec.structs.replace(one, weight=round(one.weight, 4))
    return MarketCategoryAnswer(
        name=one.name,
        highest_cpm=one.demand.highest if scope.account_id is None else None,
        floor_cpm=one.floor,
        **msgspec.structs.asdict(one.demand),
        **msgspec.structs.asdict(shown),
    )


def _show_sweep(category: MarketCategory, sweep: SweepState) -> SweepAnswer:
    return SweepAnswer(
        category=category.id,
        name=category.name,
        phase=sweep.phase,
        floor_cpm=sweep.floor,
        ticks_left=sweep.ticks_left,
        tried=[TriedFloorAnswer(floor_cpm=one.floor, **msgspec.structs.asdict(one)) for one in sweep.tried],
    )
