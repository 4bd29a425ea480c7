"""What is shown where: links and assignments of all campaigns, with the names of what they join.

Deleted campaigns and banners show nothing, so they are left out.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.catalog.assignment.model import LinkState
from adloom.catalog.campaign.model import CampaignStatus
from adloom.catalog.placement import Delivery, Layout
from adloom.runtime.listing import Filters, Listed, PageRequest
from adloom.runtime.postgres import Connection


class AssignedBanner(msgspec.Struct, frozen=True, kw_only=True):
    """A banner, in a campaign, on a placement; a link on which nothing is shown has no banner."""

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
    link_state: LinkState
    link_reason: str | None
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
    is_refused: bool | None
    reason: str | None
    override_cta_label: str | None
    override_cta_url: str | None
    override_headline: str | None
    override_subheadline: str | None
    transition_duration_ms: int | None
    updated_at: datetime | None


TABLES = """
    campaign_placements AS link
    JOIN campaigns AS campaign ON campaign.id = link.campaign_id AND campaign.deleted_at IS NULL
    JOIN placements AS placement ON placement.id = link.placement_id
    LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
    LEFT JOIN (
        banner_assignments AS it JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
    ) ON it.campaign_id = link.campaign_id AND it.placement_id = link.placement_id
"""
COLUMNS = """
    campaign.public_id AS campaign_id, campaign.name AS campaign_name, campaign.status AS campaign_status,
    placement.public_id AS placement_id, placement.slug AS placement_slug, placement.label AS placement_label,
    placement.layout_type AS placement_layout_type, placement.delivery AS placement_delivery,
    placement.is_active AS is_placement_active, link.is_active AS is_link_active,
    link.state AS link_state, link.reason AS link_reason,
    link.updated_at AS link_updated_at,
    banner.public_id AS banner_id, banner.title AS banner_title, banner.primary_image_url AS banner_image_url,
    banner.is_active AS is_banner_active, it.display_order, it.weight, it.is_fallback, it.fallback_priority,
    it.is_active, it.is_refused, it.reason, it.override_cta_label, it.override_cta_url, it.override_headline, it.override_subheadline,
    it.transition_duration_ms, it.updated_at
"""
# As delivery fills a placement, but for what depends on the request.
ORDER = """
    placement.label, placement.id, it.is_fallback, it.display_order, it.weight DESC NULLS LAST,
    campaign.priority DESC, campaign.id, it.banner_id
"""


async def read_page(connection: Connection, filters: Filters, request: PageRequest) -> Listed[AssignedBanner]:
    where = f"FROM {TABLES} WHERE {filters.sql}"
    total: int = await connection.fetchval(f"SELECT count(*) {where}", *filters.values)
    rows = await connection.fetch(
        f"SELECT {COLUMNS} {where} ORDER BY {ORDER}"
        f" LIMIT {request.size:d} OFFSET {(request.number - 1) * request.size:d}",
        *filters.values,
    )
    return Listed(items=[msgspec.convert(dict(row), AssignedBanner) for row in rows], total_count=total)
