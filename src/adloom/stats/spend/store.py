"""SQL of what was charged in each hour of a day, and of daily budgets."""

from datetime import datetime
from typing import Final
from uuid import UUID

from adloom.core.ids import CampaignId
from adloom.core.money import Micros, micros_from_paisa
from adloom.runtime.postgres import Connection
from adloom.schedule.budget_day import BudgetDay
from adloom.stats.spend.curve import Plan

BY_HOUR: Final = """
    SELECT it.hour, sum(it.spent_micros)::bigint AS micros FROM spend_hours AS it
      JOIN campaigns AS campaign ON campaign.id = it.campaign_id
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
     WHERE it.hour >= $1 AND it.hour < $2 AND (campaign.public_id = $3 OR owner.public_id = $4)
     GROUP BY 1
"""
# Active campaigns only: a paused budget is not planned.
PLANS: Final = """
    SELECT coalesce(array_agg(it.public_id), '{}') AS running,
           coalesce(sum(it.budget_daily_paisa) FILTER (WHERE it.pacing_strategy = 'Smooth'), 0)::bigint AS smooth,
           coalesce(sum(it.budget_daily_paisa) FILTER (WHERE it.pacing_strategy <> 'Smooth'), 0)::bigint AS accelerated
      FROM campaigns AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE owner.public_id = $1 AND it.deleted_at IS NULL AND it.status = 'active'
       AND (it.starts_at IS NULL OR it.starts_at <= $2) AND (it.ends_at IS NULL OR $2 < it.ends_at)
"""


async def read_spent_by_hour(
    connection: Connection,
    day: BudgetDay,
    *,
    campaign_id: UUID | None = None,
    advertiser_id: UUID | None = None,
) -> dict[datetime, Micros]:
    """Sum a day's charges by hour, of a campaign or of all campaigns of an advertiser."""
    rows = await connection.fetch(BY_HOUR, day.starts_at, day.ends_at, campaign_id, advertiser_id)
    return {row["hour"]: Micros(row["micros"]) for row in rows}


async def read_advertiser_plan(
    connection: Connection, advertiser_id: UUID, *, most: Micros | None, now: datetime
) -> tuple[Plan, list[CampaignId]]:
    """Sum the daily budgets of an advertiser's active campaigns, and return which these are."""
    row = await connection.fetchrow(PLANS, advertiser_id, now)
    assert row is not None
    smooth, accelerated = micros_from_paisa(row["smooth"]), micros_from_paisa(row["accelerated"])
    return Plan(smooth=smooth, accelerated=accelerated, most=most), row["running"]
