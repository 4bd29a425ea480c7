"""Links of campaigns to placements, assignments of banners to links, and what can be wrong with them."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import BannerId, CampaignId, PlacementId

WEIGHT_DEFAULT: Final = 100


class LinkNotFoundError(NotFoundError):
    """The campaign does not use this placement."""

    code = "CAMPAIGN_PLACEMENT_NOT_FOUND"


class LinkExistsError(ConflictError):
    """The campaign uses this placement already."""

    code = "CAMPAIGN_PLACEMENT_ALREADY_EXISTS"


class AssignmentNotFoundError(NotFoundError):
    """The banner is not assigned there."""

    code = "BANNER_ASSIGNMENT_NOT_FOUND"


class AssignmentExistsError(ConflictError):
    """The banner is assigned there already."""

    code = "BANNER_ASSIGNMENT_ALREADY_EXISTS"


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign may show its banners on a placement."""

    campaign_id: CampaignId
    placement_id: PlacementId
    is_active: bool
    created_at: datetime
    updated_at: datetime


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """This banner, in this campaign, on this placement."""

    campaign_id: CampaignId
    placement_id: PlacementId
    banner_id: BannerId
    display_order: int
    weight: int
    is_fallback: bool
    fallback_priority: int | None
    is_active: bool
    override_cta_label: str | None
    override_cta_url: str | None
    override_headline: str | None
    override_subheadline: str | None
    transition_duration_ms: int | None
    created_at: datetime
    updated_at: datetime
