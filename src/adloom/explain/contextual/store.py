"""Reads a slot, its page and the creatives that want it, as the index would."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.config.cap_counts import read_counts
from adloom.core.ids import CampaignId, SiteId
from adloom.core.money import Micros
from adloom.explain.store import PLACEMENT_KEY, read_standings
from adloom.market.report.store import read_weights
from adloom.market.results.store import read_site_results
from adloom.market.results.window import SiteResults, build_results
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.store import find_shortlists
from adloom.market.site_store import read_floors
from adloom.pages.follow.page_table import PageState
from adloom.pages.model import PageCategory
from adloom.runtime.postgres import Connection, Record
from adloom.serving.eligibility.caps import find_reached
from adloom.serving.index import contextual_store, store
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.rows import AssignmentRow, Delivery, PlacementRow
from adloom.serving.index.site import IndexedSite
from adloom.taxonomy.iab import load_content

CAMPAIGNS_MAX: Final = 1_000  # More than anybody reads.

PAGE: Final = """
    SELECT categories::text, classified_at, expires_at FROM site_pages WHERE site_id = $1 AND url = $2
"""
# Campaigns that want one of the categories, whatever keeps them from being shown; the newest first.
CAMPAIGNS: Final = """
    SELECT id FROM campaigns
     WHERE deleted_at IS NULL AND id IN (SELECT campaign_id FROM creatives)
       AND (categories && $1::varchar[] OR (bids_on_unmatched AND cardinality($1::varchar[]) = 0))
     ORDER BY id DESC LIMIT $2
"""

# A banner of a campaign.
ListedCreatives = Mapping[tuple[UUID, UUID], ShortlistCandidate]

_decode: Final = msgspec.json.Decoder(tuple[PageCategory, ...]).decode


class SlotFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A slot with its site, what is known of the page, and the campaigns that want it."""

    placement: PlacementRow
    site: IndexedSite
    state: PageState
    categories: tuple[PageCategory, ...]
    campaigns: Sequence[Sequence[CreativeRow]]
    budgets: Mapping[int, str]  # By campaign, the budget that it lacks, or the cap that it has reached.
    throttles: Mapping[CampaignId, float]  # The share of their offers that campaigns leave out.
    floors: Mapping[str, Micros]
    results: SiteResults
    weights: Mapping[str, float]  # Of the page's categories.
    listed: ListedCreatives | None  # On the slot's shortlist; None where the page was not auctioned yet.


async def read_slot(
    connection: Connection, slug: str, url: str, *, publisher_id: UUID | None, now: datetime
) -> SlotFacts | None:
    """Read a contextual slot; with a publisher, only one of its own. `url` is normalised."""
    async with store.read_one_version(connection):
        key = await connection.fetchval(PLACEMENT_KEY, slug, publisher_id)
        if key is None:
            return None
        [rows] = [one async for one in store.iter_placements(connection, [key])]
        placement = rows.placement
        if placement.delivery is not Delivery.CONTEXTUAL or placement.site_key is None:
            return None
        [site] = await contextual_store.read_sites(connection, [placement.site_key])
        page = await connection.fetchrow(PAGE, placement.site_key, url)
        categories = () if page is None else _decode(page[0])
        wanted = [node for one in categories for node in (one.id, *load_content().list_ancestors(one.id))]
        keys = [row[0] for row in await connection.fetch(CAMPAIGNS, wanted, CAMPAIGNS_MAX)]
        campaigns = [creatives async for creatives in contextual_store.iter_creatives(connection, keys)]
        assignments = [row.assignment for creatives in campaigns for row in creatives]
        standings = await read_standings(connection, assignments, now)
        return SlotFacts(
            placement=placement,
            site=site,
            state=_find_state(page, now),
            categories=categories,
            campaigns=[
                [
                    msgspec.structs.replace(row, assignment=standings.lower_bid_of(row.assignment))
                    for row in rows
                ]
                for rows in campaigns
            ],
            budgets=standings.missing | await _find_reached(connection, assignments),
            throttles={
                row.campaign_id: standings.throttles.get(row.campaign_key, 0.0) for row in assignments
            },
            floors={
                category: one.floor
                for found in (await read_floors(connection, [placement.site_key])).values()
                for category, one in found.by_category.items()
            },
            results=build_results(await read_site_results(connection, placement.site_key, now=now)),
            weights=await read_weights(connection, site.id, [one.id for one in categories], now=now),
            listed=await _read_listed(connection, site.id, url, slug),
        )


async def _find_reached(connection: Connection, rows: Iterable[AssignmentRow]) -> dict[int, str]:
    """Return the caps that campaigns have reached, by the campaign."""
    caps = {row.campaign_key: row.caps for row in rows if row.caps is not None}
    if not caps:
        return {}
    reached = find_reached(caps, await read_counts(connection, sorted(caps)))
    return {key: name for name, keys in reached.items() for key in keys}


async def _read_listed(
    connection: Connection, site_id: SiteId, url: str, slug: str
) -> ListedCreatives | None:
    found = await find_shortlists(connection, site_id, url)
    if found is None:
        return None
    slots, _, _ = found
    listed = next((one.candidates for one in slots if one.slot == slug), ())
    return {(one.banner_id, one.campaign_id): one for one in listed}


def _find_state(page: Record | None, now: datetime) -> PageState:
    if page is None or page["classified_at"] is None or page["expires_at"] is None:
        return PageState.UNKNOWN
    return PageState.KNOWN if now < page["expires_at"] else PageState.STALE
