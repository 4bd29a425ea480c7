"""The catalog as the index reads it: flat rows, before they are compiled."""

# pure

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from adloom.auction.bid import QUALITY_ONE, BidType, Quality
from adloom.auction.price import compute_click_hold, compute_ecpm, compute_worth
from adloom.auction.score import HEURISTIC, Heuristic, Signals, predict_base_ctr
from adloom.core.delivery import Delivery, Rotation
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId
from adloom.core.money import Micros, price_impression
from adloom.events.frequency.windows import Window
from adloom.events.log.event import ChargedBy
from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.serving.index.site import SiteRow
from adloom.targeting.rules import Rule

EVERGREEN = Schedule(status=ScheduleStatus.EVERGREEN)
SCORING = Heuristic()  # How likely a click is, where a bid per click meets a floor.


class OfferPrice(msgspec.Struct, frozen=True):
    """What an offer costs, and what it is charged by."""

    cost: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION

    def compute_hold(self, placement_type: str) -> Micros:
        """Return what an offer holds on a placement: its cost, or what a click is expected to cost."""
        if self.charged_by is ChargedBy.IMPRESSION:
            return self.cost
        ecpm = compute_ecpm(
            BidType.CPC, compute_worth(self.cost, _ANY_QUALITY), predict_base_ctr(placement_type)
        )
        return compute_click_hold(self.cost, ecpm=ecpm, quality=_ANY_QUALITY)


FREE = OfferPrice()
_ANY_QUALITY = Quality(QUALITY_ONE)
HOLD_MIN = Micros(1)  # Of an offer that needs a lease for its cap, and costs nothing.
_ANY_TYPE = ""  # Of which most clicks are expected.


class LeaseTerms(msgspec.Struct, frozen=True):
    """A campaign with a budget: its offers need a lease."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    cost: Micros  # What an offer holds, wherever it is made.
    price: Micros = Micros(0)  # Of a click, where clicks are charged.
    is_capped: bool = False  # Its impressions are: each offer counts one.


def build_lease_terms(row: "AssignmentRow") -> LeaseTerms:
    price = row.price.cost if row.price.charged_by is ChargedBy.CLICK else Micros(0)
    hold = Micros(max(HOLD_MIN, row.price.compute_hold(_ANY_TYPE)))
    is_capped = row.caps is not None and row.caps.impressions is not None
    return LeaseTerms(row.campaign_id, row.advertiser_id, hold, price, is_capped)


class AssignmentStatus(StrEnum):
    """Live, or the first reason that keeps an assignment from serving at any time."""

    LIVE = "live"
    ADVERTISER_DELETED = "advertiser_deleted"
    CAMPAIGN_DELETED = "campaign_deleted"
    CAMPAIGN_DRAFT = "campaign_draft"
    CAMPAIGN_PAUSED = "campaign_paused"
    CAMPAIGN_ENDED = "campaign_ended"
    CAMPAIGN_CANCELLED = "campaign_cancelled"
    CAMPAIGN_UNDATED = "campaign_undated"
    LINK_REQUESTED = "link_requested"
    LINK_REFUSED = "link_refused"
    LINK_INACTIVE = "link_inactive"
    SITE_MISSING = "site_missing"
    SITE_BLOCKED = "site_blocked"
    WARMUP = "warmup"
    BANNER_REFUSED = "banner_refused"
    NO_BID = "no_bid"
    FLOOR = "floor"
    RULE_UNREADABLE = "rule_unreadable"
    ASSIGNMENT_INACTIVE = "assignment_inactive"
    BANNER_DELETED = "banner_deleted"
    BANNER_INACTIVE = "banner_inactive"


class Caps(msgspec.Struct, frozen=True):
    """How many impressions and clicks a campaign may have in its life; None is no limit."""

    impressions: int | None
    clicks: int | None


class FrequencyLimit(msgspec.Struct, frozen=True):
    """How often one visitor may see a banner in a calendar window."""

    window: Window
    impressions_max: int


class PlacementRow(msgspec.Struct, frozen=True, kw_only=True):
    """A placement, and the key by which the catalog reports that it changed."""

    key: int
    id: PlacementId
    owner_key: int | None = None
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
    floor: Micros = Micros(0)  # The lowest eCPM that takes part.
    scoring: str = HEURISTIC
    rotation: Rotation = Rotation.ORDERED
    site: str | None = None  # The domain of its pages.
    site_key: int | None = None
    width: int | None = None
    height: int | None = None


class AssignmentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A banner of a campaign on a placement, with all that an answer needs of the three."""

    placement_key: int
    campaign_id: CampaignId
    banner_id: BannerId
    campaign_key: int = 0
    banner_key: int = 0
    status: AssignmentStatus = AssignmentStatus.LIVE
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    schedule: Schedule = EVERGREEN
    rules: tuple[Rule, ...] = ()
    caps: Caps | None = None
    advertiser_id: AdvertiserId | None = None
    advertiser_key: int | None = None
    bid_type: BidType = BidType.CPM
    bid: Micros | None = None  # None: takes part in no auction.
    frequency: tuple[FrequencyLimit, ...] = ()
    price: OfferPrice = FREE
    is_limited: bool = False  # By a budget of the campaign or of its advertiser.
    display_order: int = 0
    weight: int = 100
    campaign_priority: int = 0
    banner_priority: int = 0
    is_fallback: bool = False
    fallback_priority: int | None = None
    is_evergreen_fallback: bool = False
    title: str
    headline: str | None = None
    subheadline: str | None = None
    description: str | None = None
    primary_image_url: str
    primary_image_alt: str | None = None
    mobile_image_url: str | None = None
    video_url: str | None = None
    media_variants: dict[str, str] = {}
    cta_label: str | None = None
    cta_url: str | None = None
    cta_open_new_tab: bool = False
    utm_source: str | None = None
    utm_medium: str | None = None
    utm_campaign: str | None = None
    utm_content: str | None = None
    passes_click_id: bool = False
    bg_color: str | None = None
    fallback_placeholder_url: str | None = None
    transition_duration_ms: int | None = None


class PlacementRows(msgspec.Struct, frozen=True):
    """A placement and its assignments."""

    placement: PlacementRow
    assignments: list[AssignmentRow]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole catalog at one version."""

    version: int
    placements: list[PlacementRow]
    assignments: list[AssignmentRow]
    banner_ids: list[UUID]
    campaign_ids: list[UUID]
    sites: list[SiteRow] = []


class DirectTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Who shows whose campaign on a direct placement, and for how much at least. An account is its public id."""

    advertiser_id: UUID | None
    publisher_id: UUID | None
    is_asked_for: bool
    placement_type: str
    floor: Micros


def find_price_problem(terms: DirectTerms, bid_type: BidType, bid: Micros | None) -> AssignmentStatus | None:
    """Return why a campaign pays too little for a direct placement, or None.

    The house pays nobody, and an account not itself. Else a bid reaches the floor, as an auction would rate it. It
    may be none only where an admin gives space of the house away.
    """
    if terms.advertiser_id is None or terms.advertiser_id == terms.publisher_id:
        return None
    if not bid and (terms.publisher_id is not None or terms.is_asked_for):
        return AssignmentStatus.NO_BID
    signals = Signals(placement_type=terms.placement_type)
    worth = compute_worth(bid or Micros(0), Quality(QUALITY_ONE))
    ecpm = compute_ecpm(bid_type, worth, SCORING.build_scorer(signals).ctr_max)
    return AssignmentStatus.FLOOR if ecpm < terms.floor else None


def compute_price(bid_type: str, bid: Micros | None) -> OfferPrice:
    """Return the price of an offer of direct delivery: the campaign's flat bid, or nothing."""
    if not bid:
        return FREE
    if bid_type == BidType.CPC:
        return OfferPrice(bid, ChargedBy.CLICK)
    return OfferPrice(price_impression(bid), ChargedBy.IMPRESSION)
