"""Reads sites as auctioneers know them: terms, slots, approvals, pages, and the shortlists that were written last."""

from collections.abc import Sequence
from typing import Final

import msgspec

from adloom.auction.site_modes import ApprovalMode
from adloom.core.ids import AdvertiserId, BannerId, SiteId
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.auctioneer.state import (
    AuctionSlot,
    ConfigureAuctions,
    LoadShortlists,
    PageForSale,
    PagesClassified,
    SiteTerms,
    WrittenShortlists,
)
from adloom.market.shortlist.model import Shortlist
from adloom.pages.follow.page_table import PageEntry
from adloom.resource.changes import read_version
from adloom.runtime.postgres import Connection, Record
from adloom.taxonomy.iab import products

SITES: Final = """
    SELECT id, public_id, domain, is_suspended, accepts_filler, approval_mode, floor_cpm_micros,
           ad_product_blocklist, blocked_domains
      FROM sites WHERE public_id = ANY ($1::uuid[])
"""
SLOTS: Final = """
    SELECT site_id, slug, recommended_width, recommended_height, floor_cpm_micros FROM placements
     WHERE site_id = ANY ($1::integer[]) AND delivery = 'contextual' AND is_active ORDER BY id
"""
APPROVALS: Final = """
    SELECT approval.site_id, banner.public_id AS banner_id, approval.state, payer.public_id AS advertiser_id
      FROM site_approvals AS approval
      JOIN banners AS banner ON banner.id = approval.banner_id
      JOIN campaigns AS campaign ON campaign.id = approval.campaign_id
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE approval.site_id = ANY ($1::integer[])
"""
PAGES: Final = """
    SELECT url, version, categories::text, expires_at FROM site_pages
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND expires_at > now()
"""
SHORTLISTS: Final = """
    SELECT url, slots::text, expires_at FROM shortlists
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND slots <> '[]'
"""
SHORTLISTS_VERSION: Final = """
    SELECT coalesce(max(version), 0) FROM shortlists WHERE site_id = (SELECT id FROM sites WHERE public_id = $1)
"""


class CategoryOfPage(msgspec.Struct, frozen=True):
    """A category as a page's row has it."""

    id: str
    confidence: float


_decode_slots: Final = msgspec.json.Decoder(tuple[Shortlist, ...]).decode
_decode_categories: Final = msgspec.json.Decoder(tuple[CategoryOfPage, ...]).decode


async def load_sites(connection: Connection, site_ids: Sequence[SiteId]) -> dict[SiteId, ConfigureAuctions]:
    """Read the terms and approvals of sites at one version of the catalog; those that are gone are left out."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await read_version(connection)
        sites = await connection.fetch(SITES, site_ids)
        keys = [site["id"] for site in sites]
        slots = await connection.fetch(SLOTS, keys)
        approvals = await connection.fetch(APPROVALS, keys)
    return {
        SiteId(site["public_id"]): ConfigureAuctions(
            _build_terms(site, [slot for slot in slots if slot["site_id"] == site["id"]], version=version),
            build_approval_rules(
                site["approval_mode"], [one for one in approvals if one["site_id"] == site["id"]]
            ),
        )
        for site in sites
    }


async def load_auctioneer(connection: Connection, site_id: SiteId) -> list[msgspec.Struct]:
    """Return what an auctioneer is told when it wakes: what it wrote, its site, and its pages."""
    shortlists = {
        url: WrittenShortlists(_decode_slots(slots), expires_at)
        for url, slots, expires_at in await connection.fetch(SHORTLISTS, site_id)
    }
    version = await connection.fetchval(SHORTLISTS_VERSION, site_id)
    configured = (await load_sites(connection, [site_id])).get(site_id)
    if configured is None:
        return []
    pages = tuple(
        PageForSale(
            url,
            page_version,
            tuple((one.id, one.confidence) for one in _decode_categories(categories)),
            expires_at,
        )
        for url, page_version, categories, expires_at in await connection.fetch(PAGES, site_id)
    )
    return [LoadShortlists(shortlists, version), configured, PagesClassified(pages, is_all=True)]


def sell_page(entry: PageEntry) -> PageForSale | None:
    """Return a page as auctions know it; None if it was never classified."""
    if entry.expires_at is None:
        return None
    categories = tuple((one.id, one.confidence) for one in entry.categories)
    return PageForSale(entry.url, entry.version, categories, entry.expires_at)


def _build_terms(site: Record, slots: Sequence[Record], *, version: int) -> SiteTerms:
    blocked = site["ad_product_blocklist"]
    below = (node for product in blocked for node in products().descendants(product))
    return SiteTerms(
        version=version,
        domain=site["domain"],
        is_suspended=site["is_suspended"],
        accepts_filler=site["accepts_filler"],
        floor=site["floor_cpm_micros"],
        slots=tuple(
            AuctionSlot(
                slot["slug"], slot["recommended_width"], slot["recommended_height"], slot["floor_cpm_micros"]
            )
            for slot in slots
        ),
        blocked_products=frozenset((*blocked, *below)),
        blocked_domains=frozenset(site["blocked_domains"]),
    )


def build_approval_rules(mode: str, rows: Sequence[Record]) -> ApprovalRules:
    """Build a site's decisions from rows with a banner, a state and an advertiser."""
    decided = {BannerId(row["banner_id"]): ApprovalState(row["state"]) for row in rows}
    trusted = frozenset(
        AdvertiserId(row["advertiser_id"])
        for row in rows
        if row["state"] == ApprovalState.APPROVED and row["advertiser_id"] is not None
    )
    return ApprovalRules(ApprovalMode(mode), decided, trusted)
