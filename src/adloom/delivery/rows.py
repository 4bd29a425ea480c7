"""The catalog as the index reads it: flat rows, before they are compiled."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId


class PlacementRow(msgspec.Struct, frozen=True, kw_only=True):
    """A placement, and the key by which the catalog reports that it changed."""

    key: int
    id: PlacementId
    slug: str
    label: str
    layout_type: str
    max_banners: int
    is_active: bool
    fallback_placeholder_url: str | None
    allow_partial_render: bool


class AssignmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A banner in a campaign on a placement, with what of each of them the answer needs."""

    placement_key: int
    campaign_id: CampaignId
    banner_id: BannerId
    is_live: bool
    starts_at: datetime | None
    ends_at: datetime | None
    display_order: int
    weight: int
    campaign_priority: int
    banner_priority: int
    is_fallback: bool
    fallback_priority: int | None
    title: str
    headline: str | None
    subheadline: str | None
    description: str | None
    primary_image_url: str
    primary_image_alt: str | None
    mobile_image_url: str | None
    video_url: str | None
    media_variants: dict[str, str]
    cta_label: str | None
    cta_url: str | None
    cta_open_new_tab: bool
    utm_source: str | None
    utm_medium: str | None
    utm_campaign: str | None
    utm_content: str | None
    bg_color: str | None
    transition_duration_ms: int | None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole catalog at one version."""

    version: int
    placements: list[PlacementRow]
    assignments: list[AssignmentRow]
    banner_ids: list[UUID]
    campaign_ids: list[UUID]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between an index's version and a newer one."""

    version: int
    placement_keys: list[int]
    placements: list[PlacementRow]
    assignments: list[AssignmentRow]
    banner_ids: list[UUID]
    campaign_ids: list[UUID]
