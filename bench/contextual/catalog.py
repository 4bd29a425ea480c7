"""Generated contextual catalogs: sites with pages and slots, campaigns over categories, and shortlists."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from typing import Final

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.site_modes import ApprovalMode
from adloom.core.delivery import Delivery
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.table import ListedPage, ShortlistTable
from adloom.pages.follow.page_table import PageEntry, PageTable, build_table
from adloom.pages.model import PageCategory
from adloom.serving.index.compile import Interner, compile_creatives, compile_index
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import AssignmentRow, PlacementRow, Snapshot, compute_price
from adloom.serving.index.site import NO_SITES, SiteRow, compile_site
from adloom.serving.index.steps import run_steps
from adloom.taxonomy.iab import load_content
from bench.catalog import SEED, build_id

CATEGORIES: Final = 200
PAGES_A_SITE: Final = 1_000
SLOTS: Final = 5
SIZE: Final = (300, 250)
FLOOR: Final = Micros(500_000)


class ContextualSize(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything; `candidates` are on each shortlist."""

    pages: int
    campaigns: int
    candidates: int

    @property
    def sites(self) -> int:
        return max(1, self.pages // PAGES_A_SITE)


class ContextualCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """What a delivery process holds."""

    index: Index
    pages: dict[SiteId, PageTable]
    shortlists: dict[SiteId, ShortlistTable]


def choose_categories() -> list[str]:
    """Return categories that have parents, so that ancestors matter."""
    below = [one.id for one in load_content() if load_content().list_ancestors(one.id)]
    return below[:CATEGORIES]


def name_domain(site: int) -> str:
    return f"site-{site}.example"


def name_slot(site: int, slot: int) -> str:
    return f"site-{site}-slot-{slot}"


def name_page(number: int, sites: int) -> str:
    """Return the normalised address of a page."""
    return f"{name_domain(number % sites)}/articles/2026/11/{number}"


def build_contextual_catalog(size: ContextualSize, now: datetime) -> ContextualCatalog:
    chance = Random(SEED)  # noqa: S311 - not a secret
    categories = choose_categories()
    creatives = [_build_creative(number, chance, categories) for number in range(1, size.campaigns + 1)]
    index = _build_index(size, creatives, chance)
    site_ids = [site.id for _, site in sorted(index.sites.by_key.items())]
    entries: dict[SiteId, list[PageEntry]] = {site_id: [] for site_id in site_ids}
    listed: dict[SiteId, dict[str, ListedPage]] = {site_id: {} for site_id in site_ids}
    expires_at = now + timedelta(hours=48)
    for number in range(size.pages):
        site, url = number % size.sites, name_page(number, size.sites)
        about = chance.sample(categories, 3)
        page = tuple(PageCategory(one, 0.9 - 0.2 * place) for place, one in enumerate(about))
        entries[site_ids[site]].append(PageEntry(url, number + 1, page, now, expires_at))
        candidates = tuple(
            _build_candidate(chance.choice(about), row) for row in chance.sample(creatives, size.candidates)
        )
        slots = {name_slot(site, slot): candidates for slot in range(SLOTS)}
        listed[site_ids[site]][url] = ListedPage(url, number + 1, slots, expires_at)
    return ContextualCatalog(
        index=index,
        pages={site_id: build_table(some, version=size.pages) for site_id, some in entries.items()},
        shortlists={
            site_id: ShortlistTable(version=size.pages, pages=some) for site_id, some in listed.items()
        },
    )


def _build_index(size: ContextualSize, creatives: Sequence[CreativeRow], chance: Random) -> Index:
    placements = [
        PlacementRow(
            key=site * SLOTS + slot + 1,
            id=PlacementId(build_id(chance)),
            slug=name_slot(site, slot),
            label="Slot",
            layout_type="sidebar_single",
            max_banners=1,
            is_active=True,
            fallback_placeholder_url=None,
            allow_partial_render=False,
            delivery=Delivery.CONTEXTUAL,
            site_key=site + 1,
            width=SIZE[0],
            height=SIZE[1],
        )
        for site in range(size.sites)
        for slot in range(SLOTS)
    ]
    index = compile_index(
        Snapshot(version=1, placements=placements, assignments=[], banner_ids=[], campaign_ids=[])
    )
    shared = Interner()
    own = [run_steps(compile_creatives(row.assignment.campaign_id, [row], shared)) for row in creatives]
    sites = [
        compile_site(
            SiteRow(
                key=site + 1,
                id=SiteId(build_id(chance)),
                domain=name_domain(site),
                verified_host=name_domain(site),
                floor=FLOOR,
            ),
            ApprovalRules(ApprovalMode.AUTOMATIC),
        )
        for site in range(size.sites)
    ]
    return replace_placements(
        index,
        version=2,
        gone=(),
        placements=own,
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
        sites=NO_SITES.replaced((), sites),
    )


def _build_creative(number: int, chance: Random, categories: Sequence[str]) -> CreativeRow:
    bid = Micros(1_000_000 + chance.randrange(900) * 10_000)
    assignment = AssignmentRow(
        placement_key=-number,
        campaign_key=number,
        banner_key=number,
        campaign_id=CampaignId(build_id(chance)),
        banner_id=BannerId(build_id(chance)),
        advertiser_id=AdvertiserId(build_id(chance)),
        advertiser_key=number,
        title=f"Autumn sale {number}",
        headline="Up to 30 % off everything warm",
        description="Coats, jackets and boots for the autumn, in all sizes and many colours.",
        primary_image_url=f"https://cdn.example/banners/autumn-sale-{number}-300x250.webp",
        cta_label="See the sale",
        cta_url=f"https://shop.example/sale/{number}?ref=adloom",
        bid_type=BidType.CPM,
        bid=bid,
        price=compute_price(BidType.CPM, bid),
        is_limited=True,
    )
    terms = CreativeTerms(width=SIZE[0], height=SIZE[1], categories=tuple(categories))
    return CreativeRow(assignment, terms)


def _build_candidate(category: str, row: CreativeRow) -> ShortlistCandidate:
    one = row.assignment
    return ShortlistCandidate(
        banner_id=one.banner_id,
        campaign_id=one.campaign_id,
        advertiser_id=one.advertiser_id,
        category=category,
        category_score=0.4,
        cpm=one.bid or Micros(0),
    )
