"""The banners of a placement or a campaign side by side, over HTTP."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field

from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.placement import placements
from adloom.resource.api import AdvertiserReads, CurrentCatalog, PublisherReads, make_catalog_router
from adloom.runtime.http.api.dependencies import Database, Now
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import Pool
from adloom.stats.comparison.rates import BannerResult, compare_banners, find_leader
from adloom.stats.model import Grouping, StatsQuestion
from adloom.stats.store import read_statistics

DAYS_DEFAULT: Final = 30
DAYS_MAX: Final = 365
ROWS_MAX: Final = 1_000
CTR_PLACES: Final = 6
CHANCE_PLACES: Final = 4
TITLES: Final = "SELECT public_id, title FROM banners WHERE public_id = ANY ($1::uuid[])"

Days = Annotated[int, Query(ge=1, le=DAYS_MAX, description="How many days, today included.")]
Bound = Annotated[
    float | None,
    Field(description="Of the range in which its click rate lies with 95 %; null under 100 impressions."),
]


class ComparedBanner(Answer):
    """A banner, and how it does in comparison; only valid events count."""

    banner_id: UUID
    title: str
    impressions: int
    clicks: int
    ctr: float
    ctr_low: Bound
    ctr_high: Bound
    best_chance: Annotated[
        float | None,
        Field(
            description="How probable it is that its click rate is the highest; null under 100 impressions."
        ),
    ]


class Comparison(Answer):
    """Banners side by side; the one that leads first."""

    items: list[ComparedBanner]
    leader: Annotated[
        UUID | None, Field(description="The banner that leads; null where fewer than two can be compared.")
    ]
    certainty: Annotated[float | None, Field(description="The `bestChance` of the leader.")]


placement_router = make_catalog_router("/admin/placements/{placement_id}/comparison", tag="statistics")
campaign_router = make_catalog_router("/admin/campaigns/{campaign_id}/comparison", tag="statistics")


@placement_router.get("")
async def compare_on_placement(  # noqa: PLR0913, PLR0917 - a placement, how long, and who asks when
    placement_id: UUID,
    scope: PublisherReads,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
    days: Days = DAYS_DEFAULT,
) -> Comparison:
    """Compare the banners on a placement: which one is clicked more often, and how sure that is."""
    async with catalog.read() as connection:
        await placements.table.find(connection, scope, placement_id)
    return await _compare(pool, days, now, placement_id=placement_id)


@campaign_router.get("")
async def compare_in_campaign(  # noqa: PLR0913, PLR0917 - likewise
    campaign_id: UUID,
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
    days: Days = DAYS_DEFAULT,
) -> Comparison:
    """Compare the banners of a campaign, wherever they are shown."""
    async with catalog.read() as connection:
        await campaigns.table.find(connection, scope, campaign_id)
    return await _compare(pool, days, now, campaign_id=campaign_id)


async def _compare(
    pool: Pool, days: int, now: datetime, *, placement_id: UUID | None = None, campaign_id: UUID | None = None
) -> Comparison:
    question = StatsQuestion(
        first=now.date() - timedelta(days=days - 1),
        last=now.date(),
        placement_id=placement_id,
        campaign_id=campaign_id,
        groupings=(Grouping.BANNER,),
    )
    found = await read_statistics(pool, question, today=question.last, rows_max=ROWS_MAX)
    counted = [
        BannerResult(
            banner_id=row.key[0],
            impressions=row.counts.impressions - row.counts.invalid_impressions,
            clicks=row.counts.clicks - row.counts.invalid_clicks,
        )
        for row in found
        if isinstance(row.key[0], UUID)
    ]
    results = await asyncio.to_thread(compare_banners, counted)
    rows = await pool.fetch(TITLES, [one.banner_id for one in results])
    titles: dict[UUID, str] = {row["public_id"]: row["title"] for row in rows}
    leader = find_leader(results)
    return Comparison(
        items=[_show(one, titles[one.banner_id]) for one in results],
        leader=leader and leader.banner_id,
        certainty=leader and _round(leader.best_chance, CHANCE_PLACES),
    )


def _show(one: BannerResult, title: str) -> ComparedBanner:
    return ComparedBanner(
        banner_id=one.banner_id,
        title=title,
        impressions=one.impressions,
        clicks=one.clicks,
        ctr=round(one.ctr, CTR_PLACES),
        ctr_low=_round(one.ctr_low, CTR_PLACES),
        ctr_high=_round(one.ctr_high, CTR_PLACES),
        best_chance=_round(one.best_chance, CHANCE_PLACES),
    )


def _round(number: float | None, places: int) -> float | None:
    return None if number is None else round(number, places)
