"""Creatives over HTTP, under the campaign that they belong to."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import Query, status

from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.creative.resource import creatives, insert_creative
from adloom.resource.api import (
    AdvertiserReads,
    AdvertiserWrites,
    CurrentCatalog,
    make_catalog_router,
    set_body_type,
)
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.listing import Filters


class CreativeQuery(ListQuery):
    """How a list of creatives is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at"})

    sort: Text255 = "createdAt"


router = make_catalog_router("/admin/campaigns/{campaign_id}/creatives", tag="creatives")


@router.post("", status_code=status.HTTP_201_CREATED, response_model=creatives.answer)
@set_body_type(creatives.body)
async def create_creative(
    campaign_id: UUID, body: Body, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Let a campaign show a banner in contextual slots; its size decides in which."""
    async with catalog.write() as write:
        campaign = (await campaigns.table.lock(write, scope, campaign_id)).require_present()
        creative = creatives.build(body, campaign_id=campaign.id, created_at=now)
        await insert_creative(write, scope, creative)
    return creatives.answer.model_validate(creative)


@router.get("", response_model=Page[creatives.answer])
async def list_creatives(
    campaign_id: UUID,
    query: Annotated[CreativeQuery, Query()],
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
) -> Page[Any]:
    """List the banners that a campaign shows in contextual slots."""
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", campaign_id)
    async with catalog.read() as connection:
        await campaigns.table.find(connection, scope, campaign_id)
        listed = await creatives.table.read_page(connection, scope, filters, query.page_request)
    return build_page(creatives.answer, listed, query)


@router.delete("/{banner_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_creative(
    campaign_id: UUID, banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog
) -> None:
    """Take a banner out of the contextual slots of a campaign."""
    async with catalog.write() as write:
        (await campaigns.table.lock(write, scope, campaign_id)).require_present()
        creative = await creatives.table.find_locked(write, scope, campaign_id, banner_id)
        await creatives.table.delete(write, creative)
