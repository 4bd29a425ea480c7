"""Campaigns over HTTP, and their moves."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status
from pydantic import Field

from adloom.auction.bid import BidType
from adloom.catalog.campaign import store
from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.source import Source
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.resource.access import Scope, choose_owner
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, catalog_router
from adloom.resource.changes import Catalog, find_creator
from adloom.resource.shapes import Paisa, Price, PriceShown, TimeZone
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Name, Natural, Patch, Text, Text255
from adloom.schedule.pacing import PacingStrategy


class CampaignFields(Body):
    """What a campaign can be told; its status has routes of its own."""

    name: Name
    description: Text | None = None
    source: Source = Source.INTERNAL
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    budget_total_paisa: Paisa | None = None
    budget_daily_paisa: Paisa | None = None
    impression_cap: Natural | None = None
    click_cap: Natural | None = None
    bid_type: BidType = BidType.CPM
    bid_amount_micros: Annotated[
        Price | None, Field(alias="bidAmount", description="Per thousand impressions, or per click.")
    ] = None
    pacing_strategy: PacingStrategy = PacingStrategy.SMOOTH
    timezone: TimeZone = "UTC"
    advertiser_name: Text255 | None = None
    advertiser_contact: Text255 | None = None
    contract_ref: Text255 | None = None
    priority: Natural = 0


class CampaignBody(CampaignFields):
    """A new campaign; it is the house's own where no advertiser is named."""

    advertiser_id: UUID | None = None


class CampaignPatch(Patch, CampaignFields):
    """Changes of a campaign."""


class ScheduleBody(Body):
    """When a campaign starts and ends; what is absent stays as the campaign has it."""

    starts_at: Moment | None = None
    ends_at: Moment | None = None


class CampaignAnswer(Answer):
    """A campaign."""

    id: UUID
    advertiser_id: UUID | None
    name: str
    description: str | None
    source: Source
    status: CampaignStatus
    starts_at: datetime | None
    ends_at: datetime | None
    budget_total_paisa: int | None
    budget_daily_paisa: int | None
    impression_cap: int | None
    click_cap: int | None
    bid_type: BidType
    bid_amount_micros: Annotated[PriceShown | None, Field(alias="bidAmount")]
    pacing_strategy: PacingStrategy
    timezone: str
    advertiser_name: str | None
    advertiser_contact: str | None
    contract_ref: str | None
    priority: int
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class CampaignQuery(ListQuery):
    """What a list of campaigns may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    status: CampaignStatus | None = None
    source: Source | None = None
    advertiser_id: UUID | None = None
    include_deleted: bool = False
    search: Text255 | None = None


router = catalog_router("/admin/campaigns", tag="campaigns")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_campaign(
    body: CampaignBody, scope: AdvertiserWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> CampaignAnswer:
    """Make a campaign; it begins as a draft."""
    owner = choose_owner(scope, body.advertiser_id, field="advertiserId")
    async with catalog.write() as write:
        campaign = Campaign(
            **body.fields(but="advertiser_id"),
            id=CampaignId(ids.new()),
            advertiser_id=None if owner is None else AdvertiserId(owner),
            status=CampaignStatus.DRAFT,
            created_by=await find_creator(write),
            created_at=now,
            updated_at=now,
            deleted_at=None,
        ).with_dates_checked()
        await store.campaigns.insert(write, campaign)
    return CampaignAnswer.model_validate(campaign)


@router.get("")
async def list_campaigns(
    query: Annotated[CampaignQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[CampaignAnswer]:
    """List campaigns."""
    filters = store.matching(
        status=query.status,
        source=query.source,
        search=query.search,
        includes_deleted=query.include_deleted,
        advertiser_id=query.advertiser_id,
    )
    async with catalog.read() as connection:
        listed = await store.campaigns.page(connection, scope, filters, query.page_request)
    return page_of(CampaignAnswer, listed, query)


@router.get("/{campaign_id}")
async def read_campaign(campaign_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog) -> CampaignAnswer:
    """Read a campaign, also one that is deleted."""
    async with catalog.read() as connection:
        return CampaignAnswer.model_validate(await store.campaigns.find(connection, scope, campaign_id))


@router.patch("/{campaign_id}")
async def change_campaign(
    campaign_id: UUID, body: CampaignPatch, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> CampaignAnswer:
    """Change a campaign, field by field."""
    return await _changed(
        catalog,
        scope,
        campaign_id,
        lambda campaign: body.apply_to(campaign.present(), updated_at=now).with_dates_checked(),
    )


@router.delete("/{campaign_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_campaign(
    campaign_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> None:
    """Delete a campaign; it can be restored."""
    await _changed(catalog, scope, campaign_id, lambda campaign: campaign.deleted(now))


@router.post("/{campaign_id}/restore")
async def restore_campaign(
    campaign_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> CampaignAnswer:
    """Bring a deleted campaign back, in the status that it had."""
    return await _changed(catalog, scope, campaign_id, lambda campaign: campaign.restored(now))


@router.patch("/{campaign_id}/schedule")
async def schedule_campaign(
    campaign_id: UUID,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
    body: ScheduleBody | None = None,
) -> CampaignAnswer:
    """Let a draft begin by itself, at its own dates or at these."""
    dates = body or ScheduleBody()
    return await _changed(
        catalog,
        scope,
        campaign_id,
        lambda campaign: campaign.scheduled(starts_at=dates.starts_at, ends_at=dates.ends_at, now=now),
    )


def _add_move(action: str, target: CampaignStatus, summary: str) -> None:
    async def move(
        campaign_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
    ) -> CampaignAnswer:
        return await _changed(
            catalog, scope, campaign_id, lambda campaign: campaign.moved_to(target, now=now)
        )

    router.add_api_route(
        f"/{{campaign_id}}/{action}", move, methods=["PATCH"], name=f"{action}_campaign", description=summary
    )


_add_move("activate", CampaignStatus.ACTIVE, "Let a campaign run from now on.")
_add_move("pause", CampaignStatus.PAUSED, "Stop a campaign for a while.")
_add_move("end", CampaignStatus.ENDED, "End a campaign for good.")
_add_move("cancel", CampaignStatus.CANCELLED, "Cancel a campaign for good.")
_add_move("unschedule", CampaignStatus.DRAFT, "Make a scheduled campaign a draft again.")


async def _changed(
    catalog: Catalog, scope: Scope, campaign_id: UUID, rule: Callable[[Campaign], Campaign]
) -> CampaignAnswer:
    async with catalog.write() as write:
        before = await store.campaigns.find_locked(write, scope, campaign_id)
        campaign = await store.campaigns.update(write, before, rule(before))
    return CampaignAnswer.model_validate(campaign)
