"""A placement, and what can be wrong with one."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from pydantic import AfterValidator, Field

from adloom.core.delivery import Delivery
from adloom.core.errors import ConflictError
from adloom.core.ids import PlacementId, PublisherId, SiteId
from adloom.core.money import Micros
from adloom.resource.shapes import Price, TimeZone
from adloom.runtime.http.api.shapes import (
    Flag,
    Name,
    Natural,
    Positive,
    Text,
    Text20,
    Text100,
    WebAddress,
    make_pattern_check,
)

SLUG_PATTERN: Final = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
SLUG_LENGTH_MAX: Final = 100
PLACEMENT_TYPE_DEFAULT: Final = "banner"

Slug = Annotated[
    str,
    Field(max_length=SLUG_LENGTH_MAX),
    AfterValidator(
        make_pattern_check(
            SLUG_PATTERN, "must be small letters and digits, in words joined by single hyphens: home-hero"
        )
    ),
]
PlacementType = Annotated[Name, Field(max_length=50)]


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
    slug: Slug
    label: Name
    layout_type: Layout
    page_context: Text100 | None = None
    max_banners: Positive = 1
    recommended_width: Positive | None = None
    recommended_height: Positive | None = None
    recommended_aspect_ratio: Text20 | None = None
    notes: Text | None = None
    is_active: Flag = True
    sort_order: Natural = 0
    fallback_placeholder_url: WebAddress | None = None
    allow_partial_render: Flag = False
    delivery: Delivery = Delivery.DIRECT
    placement_type: PlacementType = PLACEMENT_TYPE_DEFAULT
    floor_cpm_micros: Annotated[Price, Field(alias="floorCpm")] = Micros(0)
    auction_scoring: AuctionScoring = AuctionScoring.HEURISTIC
    timezone: TimeZone = "UTC"
    site_id: SiteId | None = None
    created_at: datetime
    updated_at: datetime
