"""The sample's catalog as data: publishers and slots, advertisers, banners, campaigns, and ad accounts elsewhere."""

from collections.abc import Mapping
from enum import StrEnum
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import msgspec

DATA: Final = resources.files("adloom.sample.content").joinpath("data")
SELLER: Final = "meadow"  # The advertiser that has ad accounts elsewhere.
MAGAZINE: Final = "hedgerow"  # The site whose pages are known.
NO_BANNERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
# Kinds of stats sync: a kind comes after its parents, and is deleted before them.
OUTSIDE_PATHS: Final = {
    "adAccounts": "/api/ads-manager/accounts",
    "sellPages": "/api/ads-manager/sellpages",
    "adCampaigns": "/api/ads-manager/campaigns",
    "adSets": "/api/ads-manager/adsets",
    "ads": "/api/ads-manager/ads",
}


class SampleSite(msgspec.Struct, frozen=True, kw_only=True):
    """A domain, the publisher that has no other, and its fields about crawling."""

    key: str
    publisher: str
    domain: str
    name: str
    crawl: dict[str, str | int | None]


class SampleSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A placement; the floor matters where it has an `auction_type` or is contextual, the scoring in auctions."""

    slug: str
    label: str
    layout: str
    site: str
    size: tuple[int, int]
    banners_max: int = 1
    is_active: bool = True
    auction_type: str | None = None
    is_contextual: bool = False
    floor_cpm: float = 0
    scoring: str = "heuristic"
    notes: str | None = None
    is_free: bool = False  # Shows a placeholder until an ad of the user's own is put there.


class SampleAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    """An advertiser with its daily budget."""

    key: str
    name: str
    daily_budget_paisa: int | None
    timezone: str = "Europe/London"


class SampleBrand(msgspec.Struct, frozen=True):
    """A brand that banners name."""

    key: str
    label: str


class BannerShape(StrEnum):
    """A card, a banner across the page, or a bar at its foot."""

    CARD = "card"
    WIDE = "wide"
    BAR = "bar"


class SampleBanner(msgspec.Struct, frozen=True, kw_only=True):
    """A banner; `ctr` is the share of simulated visitors that click it when they see it."""

    key: str
    advertiser: str | None
    headline: str
    line: str
    action: str
    subject: str
    palette: str
    page: str
    alt: str
    shape: BannerShape = BannerShape.CARD
    is_for_feeds: bool = False
    ctr: float = 0.012
    liked_in: tuple[str, ...] = ()  # Sections of the magazine whose readers click it more, and others less.
    brand: str | None = None
    window: tuple[str, str] | None = None
    recurrence: str | None = None
    is_draft: bool = False
    publish_in_days: int | None = None
    expired_days_ago: int | None = None
    per_user_day_max: int | None = None


class SampleRule(msgspec.Struct, frozen=True):
    """One targeting rule of a campaign."""

    type: str
    operator: str
    value: list[str | int] | bool


class SampleCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign; `days` are its start and end, counted from the day of the load, `shows` its banners by slot."""

    key: str
    name: str
    description: str
    advertiser: str | None
    status: str = "active"
    days: tuple[int | None, int | None] = (None, None)
    bid_type: str = "cpm"
    bid: float | None = None
    daily_paisa: int | None = None
    total_paisa: int | None = None
    pacing: str = "Smooth"
    impression_cap: int | None = None
    priority: int = 0
    rules: tuple[SampleRule, ...] = ()
    shows: Mapping[str, tuple[str, ...]] = NO_BANNERS
    categories: tuple[str, ...] = ()  # It bids on pages about these,
    creatives: tuple[str, ...] = ()  # with these banners,
    is_pending: bool = False  # which the magazine has approved, or not yet.
    is_fallback: bool = False
    is_deleted: bool = False


class OutsideItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of stats sync: `parents` by field as (kind, key), and in `own` what it is in our own catalog."""

    kind: str
    key: str
    name: str
    parents: dict[str, tuple[str, str]] = {}
    fields: dict[str, Any] = {}
    own: dict[str, tuple[str, str]] = {}


class _Catalog(msgspec.Struct, frozen=True):
    sites: tuple[SampleSite, ...]
    slots: tuple[SampleSlot, ...]
    advertisers: tuple[SampleAdvertiser, ...]
    brands: tuple[SampleBrand, ...]
    creatives: tuple[SampleBanner, ...]
    campaigns: tuple[SampleCampaign, ...]
    outside: tuple[OutsideItem, ...]


def read_data(name: str) -> bytes:
    return DATA.joinpath(name).read_bytes()


_CATALOG: Final = msgspec.json.decode(read_data("catalog.json"), type=_Catalog)
SITES: Final = _CATALOG.sites
SITE_BY_KEY: Final = {site.key: site for site in SITES}
SLOTS: Final = _CATALOG.slots
SLOT_BY_SLUG: Final = {slot.slug: slot for slot in SLOTS}
ADVERTISERS: Final = _CATALOG.advertisers
BRANDS: Final = _CATALOG.brands
BANNERS: Final = _CATALOG.creatives
BANNER_BY_KEY: Final = {banner.key: banner for banner in BANNERS}
CAMPAIGNS: Final = _CATALOG.campaigns
OUTSIDE: Final = _CATALOG.outside
