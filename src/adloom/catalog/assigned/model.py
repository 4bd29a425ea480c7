"""A link or an assignment as it is read in a list of many campaigns."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.placement.model import Delivery, Layout


class Assigned(msgspec.Struct, frozen=True, kw_only=True):
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
