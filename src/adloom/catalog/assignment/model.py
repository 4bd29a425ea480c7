"""Links of campaigns to placements, assignments of banners to links, and what can be wrong with them."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.runtime.http.api.shapes import Flag, Natural, Text100, Text255, WebAddress

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
    is_active: Flag = True
    created_at: datetime
    updated_at: datetime


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """This banner, in this campaign, on this placement."""

    campaign_id: CampaignId
    placement_id: PlacementId
    banner_id: BannerId
    display_order: Natural = 0
    weight: Natural = WEIGHT_DEFAULT
    is_fallback: Flag = False
    fallback_priority: Natural | None = None
    is_active: Flag = True
    override_cta_label: Text100 | None = None
    override_cta_url: WebAddress | None = None
    override_headline: Text255 | None = None
    override_subheadline: Text255 | None = None
    transition_duration_ms: Natural | None = None
    created_at: datetime
    updated_at: datetime
