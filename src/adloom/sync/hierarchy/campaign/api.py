"""Campaigns of ad accounts over HTTP."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import Query, status
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from adloom.resource.api import CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Text255
from adloom.sync.api import (
    PREFIX,
    SellerActs,
    SellerBody,
    SellerListQuery,
    SellerPatch,
    SellerReads,
    SellerWrites,
)
from adloom.sync.hierarchy.campaign import store
from adloom.sync.hierarchy.model import SyncedCampaign, SyncedCampaignId
from adloom.sync.words import BudgetType, EntityStatus

BUDGET_MAX: Final = 9_999_999_999


def _amount(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number like 2500 or 99.5")  # noqa: TRY004 - Pydantic reports only this
    # The shortest text of a float is what its writer wrote.
    amount = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    if not amount.is_finite() or not 0 <= amount <= BUDGET_MAX:
        raise ValueError(f"must be between 0 and {BUDGET_MAX}")
    if amount != round(amount, 2):
        raise ValueError("must have at most 2 decimal places")
    return round(amount, 2)


Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": BUDGET_MAX}),
]
AmountShown = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class SyncedCampaignFields(Body):
    """What a campaign can be told; its budget is in the currency of its account."""

    name: Name
    ad_account_id: UUID
    sellpage_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    budget: Amount
    budget_type: BudgetType = BudgetType.DAILY
    external_campaign_id: Text255 | None = None


class SyncedCampaignBody(SyncedCampaignFields, SellerBody):
    """A new campaign."""


class SyncedCampaignPatch(SellerPatch, SyncedCampaignFields):
    """Changes of a campaign."""


class SyncedCampaignAnswer(Answer):
    """A campaign."""

    id: UUID
    advertiser_id: Annotated[UUID, Field(alias="sellerId")]
    ad_account_id: UUID
    sellpage_id: UUID
    name: str
    status: EntityStatus
    budget: AmountShown
    budget_type: BudgetType
    external_campaign_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class SyncedCampaignQuery(SellerListQuery):
    """What a list of campaigns may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    status: EntityStatus | None = None
    ad_account_id: UUID | None = None
    sellpage_id: UUID | None = None
    search: Text255 | None = None


router = catalog_router(f"{PREFIX}/campaigns", tag="ads manager")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_synced_campaign(
    body: SyncedCampaignBody, asker: SellerWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> SyncedCampaignAnswer:
    """Make a campaign of an ad account."""
    scope = asker.scope_of(body.seller_id)
    campaign = SyncedCampaign(
        **body.fields(but="seller_id"),
        id=SyncedCampaignId(ids.new()),
        advertiser_id=asker.seller_id(body.seller_id),
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    async with catalog.write() as write:
        await store.lock_parents(write, scope, campaign)
        await store.campaigns.insert(write, campaign)
    return SyncedCampaignAnswer.model_validate(campaign)


@router.get("")
async def list_synced_campaigns(
    query: Annotated[SyncedCampaignQuery, Query()], scope: SellerReads, catalog: CurrentCatalog
) -> Page[SyncedCampaignAnswer]:
    """List the campaigns of ad accounts."""
    filters = store.matching(
        status=query.status,
        ad_account_id=query.ad_account_id,
        sellpage_id=query.sellpage_id,
        search=query.search,
    )
    async with catalog.read() as connection:
        listed = await store.campaigns.page(connection, scope, filters, query.page_request)
    return page_of(SyncedCampaignAnswer, listed, query)


@router.get("/{campaign_id}")
async def read_synced_campaign(
    campaign_id: UUID, scope: SellerReads, catalog: CurrentCatalog
) -> SyncedCampaignAnswer:
    """Read a campaign of an ad account."""
    async with catalog.read() as connection:
        return SyncedCampaignAnswer.model_validate(await store.campaigns.find(connection, scope, campaign_id))


@router.patch("/{campaign_id}")
async def change_synced_campaign(
    campaign_id: UUID, body: SyncedCampaignPatch, asker: SellerWrites, catalog: CurrentCatalog, now: Now
) -> SyncedCampaignAnswer:
    """Change a campaign of an ad account, field by field."""
    scope = asker.scope_of(body.named_seller)
    async with catalog.write() as write:
        before = await store.campaigns.find_locked(write, scope, campaign_id)
        after = body.applied_to(before, updated_at=now)
        await store.lock_parents(write, scope, after, before)
        after = await store.campaigns.update(write, before, after)
    return SyncedCampaignAnswer.model_validate(after)


@router.delete("/{campaign_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_synced_campaign(
    campaign_id: UUID, scope: SellerActs, catalog: CurrentCatalog, now: Now
) -> None:
    """Delete a campaign that has no ad sets any more; what it has cost stays in the reports."""
    async with catalog.write() as write:
        campaign = await store.campaigns.find_locked(write, scope, campaign_id)
        await store.campaigns.remove(write, campaign, now=now)
