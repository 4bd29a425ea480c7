"""Who shows what where, over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from fastapi import Query

from adloom.catalog.assigned import store
from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.placement.model import Delivery, Layout
from adloom.resource.api import AdvertiserReads, CurrentCatalog, catalog_router
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.listing import PageRequest


class AssignedQuery(ListQuery):
    """What the list may be narrowed to; its order is that in which placements are filled."""

    SORTABLE: ClassVar = frozenset({"placement"})

    sort: Literal["placement"] = "placement"  # pyright: ignore[reportIncompatibleVariableOverride] - there is one order
    campaign_id: UUID | None = None
    placement_id: UUID | None = None
    banner_id: UUID | None = None

    @property
    def page_request(self) -> PageRequest:
        """The part of the list that is asked for."""
        return PageRequest(number=self.page, size=self.page_size, sort=self.sort)


class AssignedAnswer(Answer):
    """A banner, in a campaign, on a placement; where nothing is assigned to a link, its banner is null."""

    campaign_id: UUID
    campaign_name: str
    campaign_status: CampaignStatus
    placement_id: UUID
    placement_slug: str
    placement_label: str
    placement_layout_type: Layout
    placement_delivery: Delivery
    is_placement_active: bool
    is_link_active: bool
    link_updated_at: datetime
    banner_id: UUID | None
    banner_title: str | None
    banner_image_url: str | None
    is_banner_active: bool | None
    display_order: int | None
    weight: int | None
    is_fallback: bool | None
    fallback_priority: int | None
    is_active: bool | None
    override_cta_label: str | None
    override_cta_url: str | None
    override_headline: str | None
    override_subheadline: str | None
    transition_duration_ms: int | None
    updated_at: datetime | None


router = catalog_router("/admin/assignments", tag="assignments")


@router.get("")
async def list_assigned(
    query: Annotated[AssignedQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[AssignedAnswer]:
    """List which banners are on which placements, over campaigns, in the order in which placements are filled."""
    async with catalog.read() as connection:
        listed = await store.page(
            connection,
            scope,
            query.page_request,
            campaign_id=query.campaign_id,
            placement_id=query.placement_id,
            banner_id=query.banner_id,
        )
    return page_of(AssignedAnswer, listed, query)
