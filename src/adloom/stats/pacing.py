"""A site's pacing over HTTP."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from adloom.budgets.status import BudgetStatus
from adloom.budgets.status_store import load_campaign_statuses
from adloom.budgets.traffic.counts import HourCounts, read_counts
from adloom.budgets.traffic.site_day import find_site_day
from adloom.budgets.traffic.store import read_followed_shape, read_shape
from adloom.catalog.site import Site, sites
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.resource.api import PublisherReads
from adloom.resource.shapes import PaisaShown
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import Connection
from adloom.schedule.traffic_shape import LearnedShape, TrafficShape, build_day_curve, start_learning

CAMPAIGNS_MAX: Final = 200
KEY: Final = "SELECT id FROM sites WHERE public_id = $1"
# Campaigns with a link to a placement of the site, or with a banner that is approved there.
CAMPAIGNS: Final = """
    SELECT campaign.public_id FROM campaigns AS campaign
     WHERE campaign.budget_daily_paisa IS NOT NULL AND campaign.deleted_at IS NULL AND campaign.status = 'active'
       AND (EXISTS (SELECT FROM campaign_placements AS link
                      JOIN placements AS placement ON placement.id = link.placement_id
                     WHERE link.campaign_id = campaign.id AND link.state = 'accepted'
                       AND placement.site_id = $1)
            OR EXISTS (SELECT FROM site_approvals AS approval
                        WHERE approval.campaign_id = campaign.id AND approval.site_id = $1
                          AND approval.state = 'approved'))
     ORDER BY campaign.id LIMIT $2
"""


class TrafficShapesAnswer(Answer):
    """How many times the average each hour has, as learned so far."""

    weekday: Sequence[float]
    weekend: Sequence[float]


class CampaignPaceAnswer(Answer):
    """A campaign on the site: what it was to spend by now, and the share of its offers that is left out."""

    campaign_id: UUID
    daily_budget: Annotated[PaisaShown, Field(alias="dailyBudgetPaisa")]
    spent: Annotated[PaisaShown, Field(alias="spentPaisa")]
    expected: Annotated[PaisaShown, Field(alias="expectedPaisa")]
    ratio: Annotated[float | None, Field(description="Spent by expected; null while nothing is expected.")]
    throttle: float


class SiteDayAnswer(Answer):
    """A site's day: what came, what was filled, and how campaigns keep pace with it."""

    day_start: datetime
    elapsed: Annotated[float, Field(description="Seconds since the start of the day.")]
    requests: int
    served: int
    throttled: Annotated[int, Field(description="Offers that campaigns left out to keep pace.")]
    shapes: TrafficShapesAnswer
    campaigns: Annotated[
        Sequence[CampaignPaceAnswer], Field(description="With a daily budget; empty for publishers.")
    ]


router = make_router("/admin/sites/{site_id}", "pacing", 400, 401, 403, 404, 503)


@router.get("/pacing")
async def read_site_pacing(
    site_id: UUID, scope: PublisherReads, pool: Database, valkey: CurrentValkey, now: Now
) -> SiteDayAnswer:
    """Read how a site's traffic comes over its day, and how its campaigns follow it."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        key: int = await connection.fetchval(KEY, site.id)
        learned = await read_shape(connection, key) or _start(site)
        # The budgets of advertisers are none of a publisher's business.
        campaigns = [] if scope.account_id else await _load_statuses(connection, key, now)
        of_others = await read_followed_shape(connection, None)
    day_seconds = site.pacing.day_duration_seconds
    own = learned.build_shape(site.timezone, day_seconds)
    day = find_site_day(now, timezone=site.timezone, day_seconds=day_seconds)
    total = HourCounts()
    for hour in await read_counts(valkey, key, day):
        total.requests += hour.requests
        total.served += hour.served
        total.throttled += hour.throttled
    return SiteDayAnswer(
        day_start=datetime.fromtimestamp(day.starts, UTC),
        elapsed=round(now.timestamp() - day.starts, 3),
        requests=total.requests,
        served=total.served,
        throttled=total.throttled,
        shapes=TrafficShapesAnswer(weekday=_round(learned.weekday), weekend=_round(learned.weekend)),
        campaigns=[
            _build_pace(campaign_id, status, own if status.site_key == key else of_others, now)
            for campaign_id, status in campaigns
        ],
    )


async def _load_statuses(
    connection: Connection, site_key: int, now: datetime
) -> list[tuple[CampaignId, BudgetStatus]]:
    rows = await connection.fetch(CAMPAIGNS, site_key, CAMPAIGNS_MAX)
    found = await load_campaign_statuses(connection, [CampaignId(row["public_id"]) for row in rows], now=now)
    return list(found.items())


def _build_pace(
    campaign_id: CampaignId, status: BudgetStatus, shape: TrafficShape, now: datetime
) -> CampaignPaceAnswer:
    assert status.daily_budget is not None
    curve = build_day_curve(shape, status.budget_day.starts_at, status.budget_day.ends_at)
    expected = status.daily_budget * curve.compute_share(now)
    return CampaignPaceAnswer(
        campaign_id=campaign_id,
        daily_budget=status.daily_budget,
        spent=status.spent_window,
        expected=Micros(int(expected)),
        ratio=round(status.spent_window / expected, 4) if expected > 0 else None,
        throttle=round(status.throttle, 4),
    )


def _start(site: Site) -> LearnedShape:
    return start_learning(site.pacing.weekday_shape, site.pacing.weekend_shape)


def _round(hours: Sequence[float]) -> list[float]:
    return [round(hour, 4) for hour in hours]
