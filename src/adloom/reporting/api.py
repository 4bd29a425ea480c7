"""Statistics over HTTP."""

from datetime import date
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from adloom.core.actor import Actor, Role
from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.reporting.model import Counts, Grouping, StatsQuestion, StatsRow, total
from adloom.reporting.store import statistics
from adloom.runtime.http.dependencies import CurrentActor, Database, GuardedRoute
from adloom.runtime.http.openapi import problems
from adloom.runtime.http.shapes import Answer, Body


def _iso_day(value: object) -> object:
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError("must be a day like 2026-11-15") from error


Day = Annotated[date, BeforeValidator(_iso_day)]


class StatsQuery(Body):
    """Which counts are asked for; both days are included, and days are those of UTC."""

    first: Annotated[Day, Field(alias="from")]
    last: Annotated[Day, Field(alias="to")]
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    group_by: Grouping = Grouping.DAY


class StatsTotals(Answer):
    """Counts and what follows from them."""

    impressions: int
    clicks: int
    ctr: Annotated[float, Field(description="Clicks by impressions, a fraction.")]
    spend_paisa: int


class StatsItem(StatsTotals):
    """The counts of one key; only the key of the grouping is there. A campaign of null is none."""

    day: Annotated[date | None, Field(alias="date")] = None
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None


class StatsAnswer(Answer):
    """Statistics, by their key."""

    items: list[StatsItem]
    totals: StatsTotals


KEY_FIELDS: Final = {
    Grouping.DAY: "day",
    Grouping.BANNER: "banner_id",
    Grouping.PLACEMENT: "placement_id",
    Grouping.CAMPAIGN: "campaign_id",
}

router = APIRouter(
    prefix="/admin/stats", tags=["statistics"], route_class=GuardedRoute, responses=problems(400, 401, 503)
)


@router.get("/banners", response_model_exclude_unset=True)
async def banner_statistics(
    query: Annotated[StatsQuery, Query()], actor: CurrentActor, pool: Database
) -> StatsAnswer:
    """Count impressions and clicks, today's included; an account sees those of its own things."""
    rows = await statistics(pool, _question(query, actor))
    return StatsAnswer(
        items=[_item(row, query.group_by) for row in rows],
        totals=StatsTotals.model_validate(_figures(total(rows))),
    )


def _question(query: StatsQuery, actor: Actor) -> StatsQuestion:
    if query.last < query.first:
        problem = FieldProblem("to", "must not be before `from`")
        raise ValidationFailedError("`to` must not be before `from`.", errors=[problem])
    return StatsQuestion(
        first=query.first,
        last=query.last,
        grouping=query.group_by,
        banner_id=query.banner_id,
        placement_id=query.placement_id,
        campaign_id=query.campaign_id,
        advertiser_id=actor.account_id if actor.role is Role.ADVERTISER else None,
        publisher_id=actor.account_id if actor.role is Role.PUBLISHER else None,
    )


def _item(row: StatsRow, grouping: Grouping) -> StatsItem:
    return StatsItem.model_validate({KEY_FIELDS[grouping]: row.key, **_figures(row.counts)})


def _figures(counts: Counts) -> dict[str, int | float]:
    # Nothing costs anything yet: prices come with budgets.
    return {
        "impressions": counts.impressions,
        "clicks": counts.clicks,
        "ctr": counts.ctr,
        "spend_paisa": 0,
    }
