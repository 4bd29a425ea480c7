"""Daily budgets over HTTP: use of each, totals, and opening a new window."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query
from pydantic import AfterValidator, Field

from adloom.budgets.addresses import make_campaign_address
from adloom.catalog.campaign.resource import campaigns
from adloom.core.money import MICROS_PER_UNIT
from adloom.resource.api import AdminWrites, AdvertiserReads, CurrentCatalog
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import (
    CurrentValkey,
    Database,
    Now,
    make_router,
)
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.budget import store
from adloom.stats.budget.model import NOUN
from adloom.stats.budget.store import open_window


def _check_given(reason: str) -> str:
    if not reason.strip():
        raise ValueError("must say why, in a few words")
    return reason.strip()


# Why a budget is changed by hand, for the audit trail.
GivenReason = Annotated[Text255, AfterValidator(_check_given)]


class PacerQuery(ListQuery):
    """Which pacers are listed."""

    SORTABLE: ClassVar = frozenset({"last_updated"})

    sort: Text255 = "-lastUpdated"
    campaign_id: UUID | None = None


class ResetBody(Body):
    """The reason for a new daily window."""

    reason: GivenReason


class PacerAnswer(Answer):
    """How far a campaign has used its daily budget; a campaign has one pacer, with the campaign's id."""

    id: UUID
    campaign_id: UUID
    daily_budget: PriceShown
    spent_today: Annotated[PriceShown, Field(description="Today in its zone, or since it was last reset.")]
    remaining_budget: PriceShown
    utilization_percent: float
    strategy: PacingStrategy
    last_updated: datetime


class BudgetStatisticsAnswer(Answer):
    """Totals of the daily budgets of campaigns that are neither ended nor cancelled."""

    total_campaigns: int
    total_daily_budget: PriceShown
    total_spent_today: PriceShown
    average_utilization: Annotated[float, Field(description="Per cent, on average over the campaigns.")]
    campaigns_exceeded: Annotated[
        int, Field(description="Those whose rest does not pay for one more impression or click.")
    ]


router = make_router("/api/v1/admin/budget", "budgets", 400, 401, 403, 404, 413, 503)


@router.get("/pacers")
async def list_pacers(
    query: Annotated[PacerQuery, Query()], scope: AdvertiserReads, pool: Database, now: Now
) -> Page[PacerAnswer]:
    """List how far campaigns have used their daily budgets, last changed first."""
    async with pool.acquire() as connection:
        listed = await store.read_page(connection, scope, query.campaign_id, query.page_request, now=now)
    return build_page(PacerAnswer, listed, query)


@router.get("/statistics")
async def budget_statistics(scope: AdvertiserReads, pool: Database, now: Now) -> BudgetStatisticsAnswer:
    """Sum up all daily budgets."""
    async with pool.acquire() as connection:
        found = await store.read_totals(connection, scope, now=now)
    return BudgetStatisticsAnswer.model_validate(found)


@router.get("/campaigns/{campaign_id}")
async def read_pacer(campaign_id: UUID, scope: AdvertiserReads, pool: Database, now: Now) -> PacerAnswer:
    """Return how far a campaign has used its daily budget."""
    async with pool.acquire() as connection:
        campaign = await campaigns.table.find(connection, scope, campaign_id)
        return PacerAnswer.model_validate(await store.find(connection, campaign.id, now=now))


@router.put("/campaigns/{campaign_id}/reset")
async def reset_budget(  # noqa: PLR0913, PLR0917 - the framework gives them by name
    campaign_id: UUID,
    body: ResetBody,
    scope: AdminWrites,
    catalog: CurrentCatalog,
    pool: Database,
    valkey: CurrentValkey,
    now: Now,
) -> PacerAnswer:
    """Open a new daily window of a campaign's budget; its total budget and past charges stay."""
    async with catalog.write() as write:
        campaign = await campaigns.table.find(write.connection, scope, campaign_id)
        pacer = await store.find(write.connection, campaign.id, now=now)
        # Audited first: whatever happens then, the record says who asked for it, and why.
        changes = {
            "reason": {"from": None, "to": body.reason},
            "spentToday": {"from": pacer.spent_today / MICROS_PER_UNIT, "to": 0},
        }
        write.entries.append(
            NewAuditEntry(AuditSubject(NOUN, str(campaign.id), campaign.advertiser_id), "reset", changes)
        )
    address = make_campaign_address(campaign.id, campaign.advertiser_id)
    await open_window(pool, valkey, address, reason=body.reason)
    async with pool.acquire() as connection:
        return PacerAnswer.model_validate(await store.find(connection, campaign.id, now=now))
