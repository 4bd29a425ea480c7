"""The figures of campaigns over HTTP: what they have had, what they have spent, and how far their caps are used."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field

from adloom.budgets.config.cap_counts import read_counts
from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.budgets.spent_at import NEVER, find_spent_at
from adloom.budgets.status import BudgetStatus
from adloom.budgets.status_store import load_campaign_statuses
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.campaign.resource import campaigns
from adloom.resource.access import Scope
from adloom.resource.api import AdvertiserReads
from adloom.resource.shapes import PaisaShown
from adloom.runtime.http.api.dependencies import Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.listing import PAGE_SIZE_MAX, Filters
from adloom.runtime.postgres import Connection, read_snapshot
from adloom.stats.model import CTR_PLACES

KEYS: Final = "SELECT public_id, id FROM campaigns WHERE public_id = ANY ($1::uuid[])"
NO_LIMIT: Final = "Null is no limit."


class CampaignFiguresQuery(Body):
    """Which campaigns."""

    campaign_id: Annotated[
        list[UUID], Field(min_length=1, max_length=PAGE_SIZE_MAX, description="Repeat it for several.")
    ]


class CampaignFigures(Answer):
    """What a campaign has had in its life, and how its budgets are. Events that are not valid are left out."""

    campaign_id: UUID
    impressions: int
    clicks: int
    ctr: Annotated[float, Field(description="Clicks by impressions, a fraction.")]
    impression_cap: Annotated[int | None, Field(description=NO_LIMIT)]
    click_cap: Annotated[int | None, Field(description=NO_LIMIT)]
    spent_today: Annotated[PaisaShown, Field(alias="spentTodayPaisa")]
    spent_total: Annotated[PaisaShown, Field(alias="spentTotalPaisa")]
    daily_budget: Annotated[PaisaShown | None, Field(alias="dailyBudgetPaisa", description=NO_LIMIT)]
    total_budget: Annotated[PaisaShown | None, Field(alias="totalBudgetPaisa", description=NO_LIMIT)]
    pace: Annotated[
        float | None, Field(description="Spent, by what may be by now; null where it does not run smoothly.")
    ]
    daily_spent_at: Annotated[
        datetime | None, Field(description="When the day's budget is spent, if it goes on like this.")
    ]
    total_spent_at: Annotated[
        datetime | None, Field(description="When the total budget is spent, if every day is like this.")
    ]


class CampaignFiguresAnswer(Answer):
    """The figures of the campaigns that are there and yours, in the order of the ids."""

    items: Sequence[CampaignFigures]


router = make_router("/admin/stats", "statistics", 400, 401, 403, 503)


@router.get("/campaigns")
async def campaign_figures(
    query: Annotated[CampaignFiguresQuery, Query()], scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignFiguresAnswer:
    """Return the figures of up to 100 campaigns, as a list of campaigns shows them."""
    async with read_snapshot(pool) as connection:
        found = await _load(connection, scope, query.campaign_id)
        statuses = await load_campaign_statuses(connection, [one.id for one in found], now=now)
        keys = {row[0]: row[1] for row in await connection.fetch(KEYS, [one.id for one in found])}
        counts = await read_counts(connection, list(keys.values()))
    return CampaignFiguresAnswer(
        items=[
            build_figures(one, counts.get(keys[one.id], NO_COUNTS), statuses[one.id], now=now)
            for one in found
        ]
    )


def build_figures(
    campaign: Campaign, counts: LifetimeCounts, status: BudgetStatus, *, now: datetime
) -> CampaignFigures:
    is_running = campaign.is_running(now)
    ends = find_spent_at(status, now=now, ends_at=campaign.ends_at) if is_running else NEVER
    return CampaignFigures(
        campaign_id=campaign.id,
        impressions=counts.impressions,
        clicks=counts.clicks,
        ctr=round(counts.clicks / counts.impressions, CTR_PLACES) if counts.impressions else 0.0,
        impression_cap=campaign.impression_cap,
        click_cap=campaign.click_cap,
        spent_today=status.spent_today,
        spent_total=status.spent_total,
        daily_budget=status.daily_budget,
        total_budget=status.total_budget,
        pace=status.pace if is_running else None,
        daily_spent_at=ends.daily,
        total_spent_at=ends.total,
    )


async def _load(connection: Connection, scope: Scope, ids: Sequence[UUID]) -> list[Campaign]:
    filters = Filters()
    filters.add("it.public_id = ANY ({}::uuid[])", list(ids))
    filters.add_given("owner.public_id = {}", scope.account_id)
    found = {one.id: one for one in await campaigns.table.load_where(connection, filters, "")}
    return [one for campaign_id in dict.fromkeys(ids) if (one := found.get(campaign_id)) is not None]  # pyright: ignore[reportArgumentType]  ids of campaigns
