"""What a market file may say: placements, sites, visitors, advertisers and campaigns; and what its sites are made into."""

# pure

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.auction.bid import BidType
from adloom.auction.score import HEURISTIC
from adloom.auction.site_modes import ApprovalMode, AuctionMode
from adloom.bidding.window import BidStrategy
from adloom.core.delivery import Delivery
from adloom.core.errors import CommandError
from adloom.core.ids import SiteId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.events.frequency.windows import Window
from adloom.forecast.market import SoldPage
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import HOURS
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.site import SiteRow
from adloom.taxonomy.iab import load_content

COPIES_MAX: Final = 10_000
BANNERS_MAX: Final = 20
MONDAY: Final = date(2026, 3, 2)
Amount = Annotated[float, Meta(ge=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, le=1)]
Number = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Pixels = Annotated[int, Meta(ge=1, le=10_000)]
ScoringName = Annotated[str, Meta(pattern="^(heuristic|learned)$")]
NameText = Annotated[str, Meta(min_length=1, max_length=255)]
DayHours = Annotated[tuple[Annotated[float, Meta(ge=0)], ...], Meta(min_length=HOURS, max_length=HOURS)]


class MarketFileError(CommandError):
    """A file that is no market; the message says where, and what it should be."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class RivalsPart(_Part, frozen=True, kw_only=True):
    """Bids from outside: how often there is one, its median eCPM, and the deviation of its logarithm."""

    share: Share = 1.0
    median: Amount
    spread: Annotated[float, Meta(ge=0, le=5)] = 0.5


class VisitorPart(_Part, frozen=True, kw_only=True):
    """A kind of visitors, and how large a part of all they are."""

    share: Annotated[float, Meta(gt=0)] = 1.0
    device: str | None = None
    country: str | None = None
    language: str | None = None
    segment: str | None = None
    referrer: str | None = None
    logged_in: bool = False
    new: bool = False


class PlacementPart(_Part, frozen=True, kw_only=True):
    """A placement, and its requests on an average day."""

    slug: NameText
    requests_a_day: Amount
    delivery: Delivery = Delivery.AUCTION
    type: NameText = "feed"
    floor: Amount = 0.0
    slots: Annotated[int, Meta(ge=1, le=16)] = 1
    zone: str = "UTC"
    scoring: ScoringName = HEURISTIC  # Of auctions.
    rivals: RivalsPart | None = None
    site: str | None = None  # Of a contextual slot: the domain of its pages.
    width: Pixels | None = None
    height: Pixels | None = None


class PagePart(_Part, frozen=True, kw_only=True):
    """A page of a site: what it is about, and how large a part of the visits it has."""

    path: Annotated[str, Meta(pattern="^/", max_length=1_000)]
    share: Annotated[float, Meta(gt=0)] = 1.0
    categories: dict[str, Share] = {}  # With confidences; none: it is sold as filler.


class SitePart(_Part, frozen=True, kw_only=True):
    """A site with contextual slots, and its pages."""

    domain: NameText
    pages: Annotated[tuple[PagePart, ...], Meta(min_length=1, max_length=10_000)]
    floor: Amount = 0.0
    bid_weight: Annotated[float, Meta(ge=0.1, le=1)] = 0.5
    auction: AuctionMode = AuctionMode.SECOND_PRICE
    filler: bool = True


class AdvertiserPart(_Part, frozen=True, kw_only=True):
    """An advertiser with a budget for all its campaigns."""

    name: NameText
    daily_budget: Amount | None = None
    zone: str = "UTC"


class RulePart(_Part, frozen=True, kw_only=True):
    """A targeting rule, as the API takes it."""

    rule_type: str
    operator: str
    value: bool | list[str | int]


class FrequencyPart(_Part, frozen=True, kw_only=True):
    """How often one visitor sees the banner."""

    window: Window
    impressions: Annotated[int, Meta(ge=1, le=1_000)]


class CampaignPart(_Part, frozen=True, kw_only=True):
    """A campaign with one banner, or one for each of `banner_click_rates`; with `copies`, as many of them with bids around this one."""

    name: NameText
    bid: Annotated[float, Meta(gt=0, le=1e6)]
    bid_type: BidType = BidType.CPM
    advertiser: str | None = None
    daily_budget: Amount | None = None
    total_budget: Amount | None = None
    pacing: PacingStrategy = PacingStrategy.SMOOTH
    bid_strategy: BidStrategy = BidStrategy.FIXED
    target_cpa: Annotated[float, Meta(gt=0, le=1e9)] | None = None  # What a conversion should cost.
    starts: str | None = None  # A day, or a moment with its zone.
    ends: str | None = None
    zone: str = "UTC"
    placements: tuple[str, ...] | None = None  # None: all of them.
    targeting: tuple[RulePart, ...] = ()
    impression_cap: Number | None = None
    click_cap: Number | None = None
    frequency: FrequencyPart | None = None
    priority: Annotated[int, Meta(ge=0, le=1_000)] = 0
    click_rate: Share = 0.002
    banner_click_rates: Annotated[tuple[Share, ...], Meta(max_length=BANNERS_MAX)] = ()  # Of several banners.
    conversion_rate: Share = 0.0
    categories: tuple[str, ...] = ()  # Of pages, for contextual slots;
    filler: bool = False  # and whether it bids on pages without any;
    excluded_categories: tuple[str, ...] = ()  # on pages of these it does not.
    copies: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 1
    bid_spread: Annotated[float, Meta(ge=0, le=5)] = 0.0


class MarketFile(_Part, frozen=True, kw_only=True):
    """The whole file."""

    placements: Annotated[tuple[PlacementPart, ...], Meta(min_length=1, max_length=10_000)]
    campaigns: Annotated[tuple[CampaignPart, ...], Meta(min_length=1, max_length=COPIES_MAX)]
    sites: tuple[SitePart, ...] = ()
    visitors: tuple[VisitorPart, ...] = (VisitorPart(),)
    advertisers: tuple[AdvertiserPart, ...] = ()
    starts: date = MONDAY
    weekday: DayHours = (1.0,) * HOURS  # Only proportions matter.
    weekend: DayHours | None = None
    people: Number = 0  # How many different people come; 0: nobody twice.
    seen: Share = 1.0


def build_sites(parts: Sequence[SitePart]) -> dict[str, tuple[SiteRow, list[SoldPage]]]:
    """Build the sites and their pages, by domain."""
    twice = [domain for domain, times in Counter(one.domain for one in parts).items() if times > 1]
    if twice:
        raise MarketFileError(
            f"Several sites have one domain: {', '.join(twice)}. Give all its pages to one."
        )
    return {one.domain: _build_site(one, number) for number, one in enumerate(parts, 1)}


def _build_site(part: SitePart, key: int) -> tuple[SiteRow, list[SoldPage]]:
    """Build a site whose publisher approves every banner, and its pages."""
    site = SiteRow(
        key=key,
        id=SiteId(UUID(int=5 << 64 | key)),
        domain=part.domain,
        verified_host=part.domain,
        floor=Micros(round(part.floor * MICROS_PER_UNIT)),
        bid_weight=part.bid_weight,
        auction_mode=part.auction,
        accepts_filler=part.filler,
        approval_mode=ApprovalMode.AUTOMATIC,
    )
    return site, [_build_page(page, part, key) for page in part.pages]


def _build_page(page: PagePart, site: SitePart, site_key: int) -> SoldPage:
    for category in page.categories:
        check_category(category, f"The page {page.path} of {site.domain}")
    return SoldPage(site_key, name_page(site, page), tuple(page.categories.items()))


def check_category(category: str, whose: str) -> None:
    if load_content().find(category) is None:
        raise MarketFileError(
            f"{whose} has a category that the content taxonomy has not: {category!r}. Give an id such as '483'."
        )


def name_page(site: SitePart, page: PagePart) -> str:
    return f"https://{site.domain}{page.path}"


def list_visits(placement: PlacementPart, sites: Sequence[SitePart]) -> list[tuple[str | None, float]]:
    """Return the pages that a placement is on, and the part of its requests that each has."""
    if placement.delivery is not Delivery.CONTEXTUAL:
        return [(None, 1.0)]
    [site] = [one for one in sites if one.domain == placement.site]
    shares = sum(page.share for page in site.pages)
    return [(name_page(site, page), page.share / shares) for page in site.pages]


def build_creatives(part: CampaignPart, key: int, rows: Sequence[AssignmentRow]) -> list[CreativeRow]:
    """Return what a campaign shows in contextual slots: it wants pages, and pays per thousand impressions."""
    if not (part.categories or part.filler) or part.bid_type is not BidType.CPM:
        return []
    terms = CreativeTerms(
        categories=part.categories,
        excluded_categories=part.excluded_categories,
        takes_filler=part.filler,
    )
    return [CreativeRow(msgspec.structs.replace(row, placement_key=-key), terms) for row in rows]
