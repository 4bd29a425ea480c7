"""The catalog as the index reads it: flat rows, before they are compiled."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.score import HEURISTIC
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.offer_price import FREE, Price
from adloom.targeting.rules import Rule

EVERGREEN = Schedule(status=ScheduleStatus.EVERGREEN)


class Delivery(StrEnum):
    """Which of the three ways fills a placement."""

    DIRECT = "direct"
    AUCTION = "auction"
    CONTEXTUAL = "contextual"


class AssignmentStatus(StrEnum):
    """Whether an assignment may serve at all, or the first thing that keeps it from it, whatever the time."""

    LIVE = "live"
    ADVERTISER_DELETED = "advertiser_deleted"
    CAMPAIGN_DELETED = "campaign_deleted"
    CAMPAIGN_DRAFT = "campaign_draft"
    CAMPAIGN_PAUSED = "campaign_paused"
    CAMPAIGN_ENDED = "campaign_ended"
    CAMPAIGN_CANCELLED = "campaign_cancelled"
    CAMPAIGN_UNDATED = "campaign_undated"
    LINK_INACTIVE = "link_inactive"
    SITE_BLOCKED = "site_blocked"
    RULE_UNREADABLE = "rule_unreadable"
    ASSIGNMENT_INACTIVE = "assignment_inactive"
    BANNER_DELETED = "banner_deleted"
    BANNER_INACTIVE = "banner_inactive"


class Caps(msgspec.Struct, frozen=True):
    """How many impressions and clicks a campaign may have in its life; None is any number."""

    impressions: int | None
    clicks: int | None


class FrequencyLimit(msgspec.Struct, frozen=True):
    """How often one reader may see a banner in a window of the calendar."""

    window: Window
    impressions_max: int


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
    delivery: Delivery = Delivery.DIRECT
    placement_type: str = "banner"
    timezone: str = "UTC"
    floor: Micros = Micros(0)  # Under which eCPM nobody takes part in its auctions.
    scoring: str = HEURISTIC


class AssignmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A banner in a campaign on a placement, with what of each of them the answer needs."""

    placement_key: int
    campaign_id: CampaignId
    banner_id: BannerId
    campaign_key: int = 0
    banner_key: int = 0
    status: AssignmentStatus = AssignmentStatus.LIVE
    starts_at: datetime | None
    ends_at: datetime | None
    schedule: Schedule = EVERGREEN
    rules: tuple[Rule, ...] = ()
    caps: Caps | None = None
    advertiser_id: AdvertiserId | None = None
    advertiser_key: int | None = None
    bid_type: BidType = BidType.CPM
    bid: Micros | None = None  # None takes part in no auction.
    frequency: tuple[FrequencyLimit, ...] = ()
    price: Price = FREE
    is_limited: bool = False  # By a budget of the campaign, or of who pays for it.
    display_order: int
    weight: int
    campaign_priority: int
    banner_priority: int
    is_fallback: bool
    fallback_priority: int | None
    is_evergreen_fallback: bool = False
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


class PlacementRows(msgspec.Struct, frozen=True):
    """A placement with everything that is assigned to it."""

    placement: PlacementRow
    assignments: list[AssignmentRow]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole catalog at one version."""

    version: int
    placements: list[PlacementRow]
    assignments: list[AssignmentRow]
    banner_ids: list[UUID]
    campaign_ids: list[UUID]
