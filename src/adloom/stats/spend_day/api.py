"""The curve of a day's spend, over HTTP."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from adloom.budgets.status import project_spend
from adloom.budgets.status_store import load_advertiser_status, load_campaign_status
from adloom.catalog.advertiser.resource import advertisers
from adloom.catalog.campaign.resource import campaigns
from adloom.core.money import Micros, paisa_from_micros
from adloom.resource.api import AdvertiserReads
from adloom.runtime.http.api.dependencies import Database, GuardedRoute, Now, problems
from adloom.runtime.http.api.shapes import Answer
from adloom.schedule.budget_day import BudgetDay, build_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.spend_day.curve import Plan, SpendPoint, curve
from adloom.stats.spend_day.store import plan_of_advertiser, spent_by_hour

NO_PLAN = "What may be spent by then; null without a daily budget."


class SpendPointAnswer(Answer):
    """A moment of the day."""

    at: datetime
    spent_paisa: Annotated[int | None, Field(description="By then; null where it is ahead, or not known.")]
    line_paisa: Annotated[int | None, Field(description=NO_PLAN)]


class SpendDay(Answer):
    """A day's spend against its plan. Amounts are rounded down."""

    day: date
    timezone: str
    starts_at: datetime
    ends_at: datetime
    daily_budget_paisa: Annotated[int | None, Field(description="Null is no limit.")]
    spent_paisa: int
    projected_paisa: Annotated[int, Field(description="At the end of the day, if it goes on like this.")]
    points: Sequence[SpendPointAnswer]


router = APIRouter(
    prefix="/admin", tags=["budgets"], route_class=GuardedRoute, responses=problems(400, 401, 403, 404, 503)
)


@router.get("/campaigns/{campaign_id}/budget/day")
async def campaign_day(campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> SpendDay:
    """Return a campaign's spend of today by hour, against the line of its pacing."""
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        found = await load_campaign_status(connection, campaign.id, now=now)
        zone = campaign.timezone
        if campaign.advertiser_id is not None:
            zone = (await advertisers.table.find(connection, scope, campaign.advertiser_id)).timezone
        day = build_budget_day(found.day, zone)
        by_hour = await spent_by_hour(connection, day, campaign_id=campaign.id)
    budget = found.daily_budget or Micros(0)
    is_smooth = campaign.pacing_strategy is PacingStrategy.SMOOTH
    plan = Plan(smooth=budget) if is_smooth else Plan(accelerated=budget)
    return _answer(
        day,
        zone,
        curve(day, by_hour, plan, spent=found.spent_today, now=now),
        budget=found.daily_budget,
        spent=found.spent_today,
        ahead=found.projected,
    )


@router.get("/advertisers/{advertiser_id}/spend/day")
async def advertiser_day(advertiser_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> SpendDay:
    """Return an advertiser's spend of today by hour, against what its active campaigns may spend together."""
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        advertiser = await advertisers.table.find(connection, scope, advertiser_id)
        found = await load_advertiser_status(connection, advertiser.id, now=now)
        day = build_budget_day(found.day, advertiser.timezone)
        by_hour = await spent_by_hour(connection, day, advertiser_id=advertiser.id)
        plan = await plan_of_advertiser(connection, advertiser.id, most=found.daily_budget, now=now)
    left = None if found.daily_budget is None else Micros(max(0, found.daily_budget - found.spent))
    return _answer(
        day,
        advertiser.timezone,
        curve(day, by_hour, plan, spent=found.spent, now=now),
        budget=found.daily_budget,
        spent=found.spent,
        ahead=project_spend(found.spent, day, now=now, left=left),
    )


def _answer(  # noqa: PLR0913 - the parts of the answer
    day: BudgetDay,
    zone: str,
    points: Sequence[SpendPoint],
    *,
    budget: Micros | None,
    spent: Micros,
    ahead: Micros,
) -> SpendDay:
    return SpendDay(
        day=day.day,
        timezone=zone,
        starts_at=day.starts_at,
        ends_at=day.ends_at,
        daily_budget_paisa=_paisa(budget),
        spent_paisa=paisa_from_micros(spent),
        projected_paisa=paisa_from_micros(ahead),
        points=[
            SpendPointAnswer(at=one.at, spent_paisa=_paisa(one.spent), line_paisa=_paisa(one.line))
            for one in points
        ],
    )


def _paisa(amount: Micros | None) -> int | None:
    return None if amount is None else paisa_from_micros(amount)
