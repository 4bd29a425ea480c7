"""The contextual part of a market file: sites with pages, and what campaigns bring to them."""

# pure

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.site_modes import ApprovalMode
from adloom.core.delivery import Delivery
from adloom.core.ids import SiteId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.forecast.file.parts import CampaignPart, MarketFileError, PagePart, PlacementPart, SitePart
from adloom.forecast.market import SoldPage
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.site import SiteRow
from adloom.taxonomy.iab import load_content


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
    terms = CreativeTerms(categories=part.categories, takes_filler=part.filler)
    return [CreativeRow(msgspec.structs.replace(row, placement_key=-key), terms) for row in rows]
