"""Links and assignments with the names of what they join: as advertisers see them, and as placements' publishers do.

Deleted campaigns and banners show nothing, so they are left out.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.catalog.assignment.model import LinkState
from adloom.catalog.banner_content import CONTENT, BannerContent, write_columns
from adloom.catalog.campaign.model import CampaignStatus
from adloom.catalog.placement import Delivery, Layout
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
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


ASSIGNED_TABLES = """
    campaign_placements AS link
    JOIN campaigns AS campaign ON campaign.id = link.campaign_id AND campaign.deleted_at IS NULL
    JOIN placements AS placement ON placement.id = link.placement_id
    LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
    LEFT JOIN (
        banner_assignments AS it JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
    ) ON it.campaign_id = link.campaign_id AND it.placement_id = link.placement_id
"""
ASSIGNED_COLUMNS = """
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
ASSIGNED_ORDER = """
    placement.label, placement.id, it.is_fallback, it.display_order, it.weight DESC NULLS LAST,
    campaign.priority DESC, campaign.id, it.banner_id
"""


async def read_assigned(
    connection: Connection, filters: Filters, request: PageRequest
) -> Listed[AssignedBanner]:
    where = f"FROM {ASSIGNED_TABLES} WHERE {filters.sql}"
    total: int = await connection.fetchval(f"SELECT count(*) {where}", *filters.values)
    rows = await connection.fetch(
        f"SELECT {ASSIGNED_COLUMNS} {where} ORDER BY {ASSIGNED_ORDER}"
        f" LIMIT {request.size:d} OFFSET {(request.number - 1) * request.size:d}",
        *filters.values,
    )
    return Listed(items=[msgspec.convert(dict(row), AssignedBanner) for row in rows], total_count=total)


class PlacedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign that uses a placement, or asks for it; `banners` is how many it shows there."""

    placement_id: UUID
    placement_slug: str
    placement_label: str
    campaign_id: UUID
    campaign_name: str
    campaign_status: CampaignStatus
    advertiser_id: UUID | None
    advertiser_name: str | None
    state: LinkState
    reason: str | None
    is_asked_for: bool
    is_active: bool
    banners: int
    created_at: datetime
    updated_at: datetime


class PlacedBanner(BannerContent, frozen=True, kw_only=True):
    """A banner that a campaign shows on a placement, with all that a visitor gets to see of it."""

    campaign_id: UUID
    campaign_name: str
    campaign_status: CampaignStatus
    advertiser_id: UUID | None
    advertiser_name: str | None
    link_state: LinkState
    is_refused: bool
    reason: str | None
    is_active: bool
    banner_id: UUID
    display_order: int
    is_fallback: bool
    banner_updated_at: datetime
    created_at: datetime
    updated_at: datetime


def _join(link: str) -> str:
    """Write the tables, the link's row by a name."""
    return f"""
        campaign_placements AS {link}
        JOIN placements AS placement ON placement.id = {link}.placement_id
        LEFT JOIN publishers AS owner ON owner.id = placement.publisher_id
        JOIN campaigns AS campaign ON campaign.id = {link}.campaign_id AND campaign.deleted_at IS NULL
        LEFT JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
    """


_CAMPAIGN = """
    campaign.public_id AS campaign_id, campaign.name AS campaign_name, campaign.status AS campaign_status,
    advertiser.public_id AS advertiser_id, advertiser.name AS advertiser_name
"""
CAMPAIGNS = RowSource(
    columns=f"""
        placement.public_id AS placement_id, placement.slug AS placement_slug, placement.label AS placement_label,
        {_CAMPAIGN}, it.state, it.reason, it.is_asked_for, it.is_active,
        (SELECT count(*) FROM banner_assignments AS assigned
          WHERE assigned.campaign_id = it.campaign_id AND assigned.placement_id = it.placement_id) AS banners,
        it.created_at, it.updated_at
    """,  # noqa: S608 - our own names
    tables=_join("it"),
    tiebreak="it.campaign_id",
)
BANNERS = RowSource(
    columns=f"""
        {_CAMPAIGN}, link.state AS link_state, it.is_refused, it.reason, it.is_active,
        banner.public_id AS banner_id, {write_columns(CONTENT, assignment="it")},
        it.display_order, it.is_fallback, banner.updated_at AS banner_updated_at, it.created_at, it.updated_at
    """,
    tables=f"""
        {_join("link")}
        JOIN banner_assignments AS it ON it.campaign_id = link.campaign_id AND it.placement_id = link.placement_id
        JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
    """,
    tiebreak="it.banner_id",
)


async def read_campaigns(
    connection: Connection, filters: Filters, request: PageRequest
) -> Listed[PlacedCampaign]:
    filters.add("advertiser.deleted_at IS NULL")
    return await fetch_structs(connection, CAMPAIGNS, filters, request, PlacedCampaign)


async def read_banners(
    connection: Connection, placement_id: UUID, request: PageRequest
) -> Listed[PlacedBanner]:
    filters = Filters()
    filters.add("advertiser.deleted_at IS NULL")
    filters.add("placement.public_id = {}", placement_id)
    return await fetch_structs(connection, BANNERS, filters, request, PlacedBanner)
