"""Budgets, spend and the figures of campaigns, over HTTP. Amounts are micros here and hundredths outside, rounded down."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.budgets.config.cap_counts import read_counts
from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.budgets.spent_at import NEVER, find_spent_at
from adloom.budgets.status import BudgetStatus, project_advertiser
from adloom.budgets.status_store import load_advertiser_status, load_campaign_status, load_campaign_statuses
from adloom.catalog.advertiser import advertisers
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.campaign.resource import campaigns
from adloom.core.money import Micros
from adloom.resource.access import Scope
from adloom.resource.api import AdvertiserReads
from adloom.resource.shapes import PaisaShown
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, depend_on, make_router
from adloom.runtime.http.api.event_stream import EventStream, describe_events
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.listing import PAGE_SIZE_MAX, Filters
from adloom.runtime.postgres import Connection, read_snapshot
from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.model import CTR_PLACES
from adloom.stats.spend.curve import Plan, compute_curve
from adloom.stats.spend.feed import SpendEvent, SpendFeed, SpendListener
from adloom.stats.spend.store import read_advertiser_plan, read_spent_by_hour

HELD: Final = "Promised to visitors whose impression, or click, may still come."
NO_LIMIT: Final = "Null is no limit."
KEYS: Final = "SELECT public_id, id FROM campaigns WHERE public_id = ANY ($1::uuid[])"
AT_THE_END: Final = "Spent at the end of the day, if it goes on like this."


class AdvertiserSpendAnswer(Answer):
    """An advertiser's day, over all its campaigns. Amounts are rounded down."""

    day: Annotated[date, Field(description="Today, in the advertiser's zone.")]
    daily_budget: Annotated[PaisaShown | None, Field(alias="dailyBudgetPaisa", description=NO_LIMIT)]
    spent: Annotated[PaisaShown, Field(alias="spentPaisa")]
    held: Annotated[PaisaShown, Field(alias="heldPaisa", description=HELD)]
    remaining: Annotated[
        PaisaShown | None,
        Field(alias="remainingPaisa", description="Neither spent nor held today. " + NO_LIMIT),
    ]


class CampaignBudgetAnswer(Answer):
    """A campaign's budgets. Amounts are rounded down."""

    day: Annotated[
        date, Field(description="Today, in its advertiser's zone, or in its own where it has none.")
    ]
    daily_budget: Annotated[PaisaShown | None, Field(alias="dailyBudgetPaisa", description=NO_LIMIT)]
    total_budget: Annotated[PaisaShown | None, Field(alias="totalBudgetPaisa", description=NO_LIMIT)]
    spent_today: Annotated[PaisaShown, Field(alias="spentTodayPaisa")]
    spent_total: Annotated[PaisaShown, Field(alias="spentTotalPaisa")]
    held: Annotated[PaisaShown, Field(alias="heldPaisa", description=HELD)]
    leased: Annotated[
        PaisaShown,
        Field(alias="leasedPaisa", description="Granted to delivery processes, and not offered yet."),
    ]
    remaining_today: Annotated[
        PaisaShown | None,
        Field(
            alias="remainingTodayPaisa",
            description="Neither spent nor held, of the budget that leaves less. " + NO_LIMIT,
        ),
    ]
    pace: Annotated[
        float | None,
        Field(description="Spent, by what may be by now; 1 is on the line. Null without one: `Accelerated`."),
    ]
    is_running: Annotated[
        bool,
        Field(description="Active, and between its dates; else nobody expects it to keep its pace."),
    ]
    projected: Annotated[PaisaShown, Field(alias="projectedPaisa", description=AT_THE_END)]
    timezone: Annotated[str, Field(description="Of its day.")]
    daily_spent_at: Annotated[
        datetime | None, Field(description="When the day's budget is spent, if it goes on like this.")
    ]
    total_spent_at: Annotated[
        datetime | None, Field(description="When the total budget is spent, if every day is like this.")
    ]


class SpendPointAnswer(Answer):
    """A moment of the day."""

    at: datetime
    spent: Annotated[
        PaisaShown | None,
        Field(alias="spentPaisa", description="By then; null where it is ahead, or not known."),
    ]
    line: Annotated[
        PaisaShown | None,
        Field(alias="linePaisa", description="What may be spent by then; null without a daily budget."),
    ]


class SpendDay(Answer):
    """A day's spend against its plan. Amounts are rounded down."""

    day: date
    timezone: str
    starts_at: datetime
    ends_at: datetime
    daily_budget: Annotated[PaisaShown | None, Field(alias="dailyBudgetPaisa", description=NO_LIMIT)]
    spent: Annotated[PaisaShown, Field(alias="spentPaisa")]
    projected: Annotated[PaisaShown, Field(alias="projectedPaisa", description=AT_THE_END)]
    points: Sequence[SpendPointAnswer]


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


SHOWN: Final = tuple(
    name
    for name in CampaignBudgetAnswer.model_fields
    if name not in {"is_running", "timezone", "daily_spent_at", "total_spent_at"}
)


router = make_router("/admin", "budgets", 400, 401, 403, 404, 503)
figures_router = make_router("/admin/stats", "statistics", 400, 401, 403, 503)


@router.get("/advertisers/{advertiser_id}/spend")
async def advertiser_spend(
    advertiser_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> AdvertiserSpendAnswer:
    """Return what an advertiser has spent today."""
    async with read_snapshot(pool) as connection:
        advertiser = await advertisers.table.find(connection, scope, advertiser_id)
        found = await load_advertiser_status(connection, advertiser.id, now=now)
    return AdvertiserSpendAnswer.model_validate(found)


@router.get("/campaigns/{campaign_id}/budget")
async def campaign_budget(
    campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignBudgetAnswer:
    """Return the state of a campaign's budgets."""
    async with read_snapshot(pool) as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        found = await load_campaign_status(connection, campaign.id, now=now)
        zone = await _find_zone(connection, scope, campaign)
    is_running = campaign.is_running(now)
    ends = find_spent_at(found, now=now, ends_at=campaign.ends_at) if is_running else NEVER
    return CampaignBudgetAnswer(
        **{name: getattr(found, name) for name in SHOWN},
        is_running=is_running,
        timezone=zone,
        daily_spent_at=ends.daily,
        total_spent_at=ends.total,
    )


@router.get(
    "/spend/stream",
    response_class=EventStream,
    responses=describe_events(msgspec.json.schema_components([SpendEvent])[1]["SpendEvent"], "spend"),
)
async def spend_stream(
    scope: AdvertiserReads, caller: CurrentCaller, feed: Annotated[SpendFeed, depend_on("spend_feed")]
) -> EventStream:
    """Stream what campaigns spend, as server-sent events; an advertiser sees its own.

    `listening` means that from here on nothing is left out: read now what you want to follow. It is sent again
    after updates may have been lost. `spend` has the state of a campaign; of several at once only the last is sent.
    A comment every 15 seconds shows that the stream is alive. It ends after 15 minutes, when the server stops,
    within seconds of the end of its token, or when too much waits for a slow client; then connect again.
    """
    key = caller.subject if scope.account_id is None else str(scope.account_id)
    feed.check_room(key)
    return EventStream(feed, SpendListener(scope.account_id, caller=key))


@router.get("/campaigns/{campaign_id}/budget/day")
async def campaign_day(campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> SpendDay:
    """Return a campaign's spend of today by hour, against the line of its pacing."""
    async with read_snapshot(pool) as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        found = await load_campaign_status(connection, campaign.id, now=now)
        zone = await _find_zone(connection, scope, campaign)
        day = build_budget_day(found.day, zone)
        by_hour = await read_spent_by_hour(connection, day, campaign_id=campaign.id)
    budget = found.daily_budget or Micros(0)
    is_smooth = campaign.pacing_strategy is PacingStrategy.SMOOTH
    plan = Plan(smooth=budget) if is_smooth else Plan(accelerated=budget)
    return SpendDay.model_validate(
        {
            **msgspec.structs.asdict(day),
            "timezone": zone,
            "daily_budget": found.daily_budget,
            "spent": found.spent_today,
            "projected": found.projected,
            "points": compute_curve(day, by_hour, plan, spent=found.spent_today, now=now),
        }
    )


async def _find_zone(connection: Connection, scope: Scope, campaign: Campaign) -> str:
    """Return the zone of a campaign's day: its advertiser's, or its own where it has none."""
    if campaign.advertiser_id is None:
        return campaign.timezone
    return (await advertisers.table.find(connection, scope, campaign.advertiser_id)).timezone


@router.get("/advertisers/{advertiser_id}/spend/day")
async def advertiser_day(advertiser_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> SpendDay:
    """Return an advertiser's spend of today by hour, against what its active campaigns may spend together."""
    async with read_snapshot(pool) as connection:
        advertiser = await advertisers.table.find(connection, scope, advertiser_id)
        found = await load_advertiser_status(connection, advertiser.id, now=now)
        day = build_budget_day(found.day, advertiser.timezone)
        by_hour = await read_spent_by_hour(connection, day, advertiser_id=advertiser.id)
        plan, running = await read_advertiser_plan(
            connection, advertiser.id, most=found.daily_budget, now=now
        )
        statuses = await load_campaign_statuses(connection, running, now=now)
    return SpendDay.model_validate(
        {
            **msgspec.structs.asdict(day),
            "timezone": advertiser.timezone,
            "daily_budget": found.daily_budget,
            "spent": found.spent,
            "projected": project_advertiser(found, statuses.values()),
            "points": compute_curve(day, by_hour, plan, spent=found.spent, now=now),
        }
    )


@figures_router.get("/campaigns")
async def campaign_figures(
    query: Annotated[CampaignFiguresQuery, Query()], scope: AdvertiserReads, pool: Database, now: Now
) -> CampaignFiguresAnswer:
    """Return the figures of up to 100 campaigns, as a list of campaigns shows them."""
    async with read_snapshot(pool) as connection:
        found = await _load_campaigns(connection, scope, query.campaign_id)
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


async def _load_campaigns(connection: Connection, scope: Scope, ids: Sequence[UUID]) -> list[Campaign]:
    filters = Filters()
    filters.add("it.public_id = ANY ({}::uuid[])", list(ids))
    filters.add_given("owner.public_id = {}", scope.account_id)
    found = {one.id: one for one in await campaigns.table.load_where(connection, filters, "")}
    return [one for campaign_id in dict.fromkeys(ids) if (one := found.get(campaign_id)) is not None]  # pyright: ignore[reportArgumentType]  ids of campaigns
