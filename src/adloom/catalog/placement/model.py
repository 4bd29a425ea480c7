"""A placement, and what can be wrong with one."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from adloom.core.delivery import Delivery
from adloom.core.errors import ConflictError
from adloom.core.ids import PlacementId, PublisherId, SiteId
from adloom.core.money import Micros

SLUG_PATTERN: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
SLUG_LENGTH_MAX: Final = 100
PLACEMENT_TYPE_DEFAULT: Final = "banner"


class PlacementSlugTakenError(ConflictError):
    """Another placement has this slug."""

    code = "PLACEMENT_SLUG_EXISTS"


class PlacementInUseError(ConflictError):
    """Campaigns still show banners there."""

    code = "PLACEMENT_HAS_ACTIVE_ASSIGNMENTS"


class Layout(StrEnum):
    """How the banners of a placement are laid out."""

    FULL_SLIDER = "full_slider"
    FULL_STATIC = "full_static"
    HALF_PAIR = "half_pair"
    QUARTER_GRID = "quarter_grid"
    SIDEBAR_STACK = "sidebar_stack"
    SIDEBAR_SINGLE = "sidebar_single"
    INTERSTITIAL = "interstitial"
    POPUP = "popup"
    INLINE_CARD = "inline_card"
    STICKY_BAR = "sticky_bar"


class AuctionScoring(StrEnum):
    """How likely a click is thought to be in a placement's auctions."""

    HEURISTIC = "heuristic"
    LEARNED = "learned"


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A slot on a page."""

    id: PlacementId
    publisher_id: PublisherId | None
    slug: str
    label: str
    layout_type: Layout
    page_context: str | None
    max_banners: int
    recommended_width: int | None
    recommended_height: int | None
    recommended_aspect_ratio: str | None
    notes: str | None
    is_active: bool
    sort_order: int
    fallback_placeholder_url: str | None
    allow_partial_render: bool
    delivery: Delivery
    placement_type: str
    floor_cpm_micros: Micros
    auction_scoring: AuctionScoring
    timezone: str
    site_id: SiteId | None
    created_at: datetime
    updated_at: datetime
