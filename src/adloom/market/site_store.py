"""Reads sites as auctioneers know them: terms, slots, approvals, pages, and the shortlists that were written last."""

from collections.abc import Sequence
from typing import Final

import msgspec

from adloom.auction.floor_sweep import SweepState
from adloom.auction.site_modes import ApprovalMode, FloorMode
from adloom.core.ids import AdvertiserId, BannerId, SiteId
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.auctioneer.floors import with_floors
from adloom.market.auctioneer.state import (
    AuctionSlot,
    ConfigureAuctions,
    LoadFloors,
    LoadShortlists,
    PageForSale,
    PagesClassified,
    SiteTerms,
    WrittenShortlists,
)
from adloom.market.shortlist.model import Shortlist
from adloom.pages.follow.page_table import PageEntry
from adloom.pages.model import PageCategory
from adloom.resource.changes import read_version
from adloom.runtime.postgres import Connection, Record
from adloom.taxonomy.iab import load_products

SITES: Final = """
    SELECT id, public_id, domain, is_suspended, accepts_filler, approval_mode, floor_cpm_micros, min_floor_cpm_micros,
           floor_mode, ad_product_blocklist, blocked_domains
      FROM sites WHERE public_id = ANY ($1::uuid[])
"""
SLOTS: Final = """
    SELECT site_id, slug, recommended_width, recommended_height, floor_cpm_micros FROM placements
     WHERE site_id = ANY ($1::integer[]) AND delivery = 'contextual' AND is_active ORDER BY id
"""
APPROVALS: Final = """
    SELECT approval.site_id, banner.public_id AS banner_id, approval.state, payer.public_id AS advertiser_id,
           approval.decided_at IS NOT NULL AS is_decided
      FROM site_approvals AS approval
      JOIN banners AS banner ON banner.id = approval.banner_id
      JOIN campaigns AS campaign ON campaign.id = approval.campaign_id
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE approval.site_id = ANY ($1::integer[])
"""
FLOORS: Final = """
    SELECT site_id, category, tick, state::text FROM category_floors WHERE site_id = ANY ($1::integer[])
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


SITE_KEY: Final = "SELECT id FROM sites WHERE public_id = $1"
NO_FLOORS: Final = LoadFloors({}, 0)


_decode_sweep: Final = msgspec.json.Decoder(SweepState).decode
_decode_slots: Final = msgspec.json.Decoder(tuple[Shortlist, ...]).decode
_decode_categories: Final = msgspec.json.Decoder(tuple[PageCategory, ...]).decode


async def load_sites(connection: Connection, site_ids: Sequence[SiteId]) -> dict[SiteId, ConfigureAuctions]:
    """Read the terms and approvals of sites at one version of the catalog; those that are gone are left out."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await read_version(connection)
        sites = await connection.fetch(SITES, site_ids)
        keys = [site["id"] for site in sites]
        slots = await connection.fetch(SLOTS, keys)
        approvals = await connection.fetch(APPROVALS, keys)
        floors = await read_floors(connection, keys)
    return {
        SiteId(site["public_id"]): ConfigureAuctions(
            with_floors(
                _build_terms(
                    site, [slot for slot in slots if slot["site_id"] == site["id"]], version=version
                ),
                floors.get(site["id"], NO_FLOORS).by_category,
            ),
            build_approval_rules(
                site["approval_mode"], [one for one in approvals if one["site_id"] == site["id"]]
            ),
        )
        for site in sites
    }


async def read_floors(connection: Connection, site_keys: Sequence[int]) -> dict[int, LoadFloors]:
    """Read the moving floors of sites by key, with the evidence for them."""
    found: dict[int, LoadFloors] = {}
    for site_key, category, tick, state in await connection.fetch(FLOORS, site_keys):
        known = found.get(site_key, NO_FLOORS)
        found[site_key] = LoadFloors(
            {**known.by_category, category: _decode_sweep(state)}, max(known.tick, tick)
        )
    return found


async def read_site_floors(connection: Connection, site_id: SiteId) -> LoadFloors:
    site_key = await connection.fetchval(SITE_KEY, site_id)
    return (await read_floors(connection, [site_key])).get(site_key, NO_FLOORS)


async def load_auctioneer(connection: Connection, site_id: SiteId) -> list[msgspec.Struct]:
    """Return the first messages of an auctioneer: what it has recorded, its site, and its pages."""
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
    floors = await read_site_floors(connection, site_id)
    return [LoadShortlists(shortlists, version), floors, configured, PagesClassified(pages, is_all=True)]


def sell_page(entry: PageEntry) -> PageForSale | None:
    """Return a page as auctions know it; None if it was never classified."""
    if entry.expires_at is None:
        return None
    categories = tuple((one.id, one.confidence) for one in entry.categories)
    return PageForSale(entry.url, entry.version, categories, entry.expires_at)


def _build_terms(site: Record, slots: Sequence[Record], *, version: int) -> SiteTerms:
    blocked = site["ad_product_blocklist"]
    below = (node for product in blocked for node in load_products().list_descendants(product))
    return SiteTerms(
        version=version,
        domain=site["domain"],
        is_suspended=site["is_suspended"],
        accepts_filler=site["accepts_filler"],
        floor=site["floor_cpm_micros"],
        is_sweeping=site["floor_mode"] == FloorMode.SWEEP,
        floor_min=site["min_floor_cpm_micros"],
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
    """Build a site's decisions from rows with a banner, a state, whether somebody has decided, and an advertiser."""
    decided = {BannerId(row["banner_id"]): ApprovalState(row["state"]) for row in rows}
    trusted = frozenset(
        AdvertiserId(row["advertiser_id"])
        for row in rows
        if row["state"] == ApprovalState.APPROVED and row["advertiser_id"] is not None
    )
    revoked = frozenset(
        BannerId(row["banner_id"])
        for row in rows
        if row["state"] == ApprovalState.PENDING and row["is_decided"]
    )
    return ApprovalRules(ApprovalMode(mode), decided, trusted, revoked)
