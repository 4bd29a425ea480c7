"""Reads contextual slots for a simulation: sites, pages by what is asked for, and the campaigns that want them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.forecast.live.page_traffic import (
    NO_CONTEXTUAL,
    ContextualRows,
    PageShare,
    PageVisits,
    SlotHour,
    WantedPages,
    group_pages,
)
from adloom.pages.model import PageCategory
from adloom.runtime.postgres import Connection
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.contextual_store import iter_creatives, read_site_rows
from adloom.taxonomy.iab import load_content

VISITS_MAX: Final = 20_000  # Rows of pages that are read, the busiest first.

# Slots whose site shows ads, the busiest first.
SLOTS: Final = """
    SELECT placement.id
      FROM (SELECT placement_id, sum(requests) AS requests FROM slot_requests
             WHERE hour >= $1 AND hour < $2 GROUP BY 1) AS it
      JOIN placements AS placement ON placement.id = it.placement_id
      JOIN sites AS site ON site.id = placement.site_id
     WHERE placement.delivery = 'contextual' AND placement.is_active
       AND NOT site.is_suspended AND NOT coalesce((site.pacing ->> 'warmup')::boolean, false)
       AND ($3::text[] IS NULL OR EXISTS (
           SELECT FROM page_requests AS asked JOIN site_pages AS page ON page.id = asked.page_id
            WHERE asked.placement_id = placement.id
              AND (EXISTS (SELECT FROM jsonb_array_elements(page.categories) AS category
                            WHERE category ->> 'id' = ANY ($3)) OR ($4 AND page.categories = '[]'))
       ))
     ORDER BY it.requests DESC, 1 LIMIT $5
"""
HOURS: Final = """
    SELECT placement_id, hour, requests, filled FROM slot_requests
     WHERE hour >= $1 AND hour < $2 AND placement_id = ANY ($3::integer[])
"""
VISITS: Final = """
    SELECT it.placement_id, page.site_id, page.url, page.categories::text AS categories, sum(it.requests)::bigint AS requests
      FROM page_requests AS it JOIN site_pages AS page ON page.id = it.page_id
     WHERE it.day >= $1 AND it.placement_id = ANY ($2::integer[]) AND page.expires_at > $3
     GROUP BY it.placement_id, page.id ORDER BY requests DESC, page.id, it.placement_id LIMIT $4
"""
# Whoever bids most for a thousand impressions, if there are very many.
WANTING: Final = """
    SELECT campaign.id FROM campaigns AS campaign
     WHERE campaign.deleted_at IS NULL
       AND (campaign.public_id = $1
            OR (campaign.status IN ('active', 'scheduled') AND campaign.bid_type = 'cpm'
                AND campaign.bid_amount_micros > 0
                AND (campaign.categories && $2::varchar[] OR campaign.bids_on_unmatched)))
     ORDER BY campaign.public_id IS NOT DISTINCT FROM $1 DESC, campaign.bid_amount_micros DESC, campaign.id LIMIT $3
"""

_decode_categories: Final = msgspec.json.Decoder(tuple[PageCategory, ...]).decode


class ContextualBounds(msgspec.Struct, frozen=True):
    """How much of the contextual market is read at most."""

    slots_max: int
    pages_max: int
    campaigns_max: int


async def read_contextual(  # noqa: PLR0913 - what it is about
    connection: Connection,
    first: datetime,
    end: datetime,
    bounds: ContextualBounds,
    *,
    now: datetime,
    own: UUID | None = None,
    wanted: WantedPages | None = None,
) -> ContextualRows:
    """Read all slots, or those with pages that a campaign wants, and whoever bids there."""
    if wanted is not None and not wanted.is_any:
        return NO_CONTEXTUAL
    categories = None if wanted is None else sorted(wanted.categories)
    takes_filler = wanted is not None and wanted.takes_filler
    found = await connection.fetch(SLOTS, first, end, categories, takes_filler, bounds.slots_max)
    keys = [row[0] for row in found]
    if not keys:
        return NO_CONTEXTUAL
    pages = group_pages(await _read_visits(connection, keys, first, now, wanted), pages_max=bounds.pages_max)
    sites = await read_site_rows(connection, sorted({one.page.site_key for one in pages}))
    return ContextualRows(
        placement_keys=keys,
        hours=[SlotHour(*row) for row in await connection.fetch(HOURS, first, end, keys)],
        pages=pages,
        sites=[site for site, _ in sites],
        approvals={site.key: approvals for site, approvals in sites},
        creatives=await _read_creatives(connection, pages, own, bounds.campaigns_max),
    )


async def _read_visits(
    connection: Connection, keys: Sequence[int], first: datetime, now: datetime, wanted: WantedPages | None
) -> list[PageVisits]:
    visits: list[PageVisits] = []
    for row in await connection.fetch(VISITS, first.date(), keys, now, VISITS_MAX):
        categories = _decode_categories(row["categories"])
        visits.append(
            PageVisits(
                placement_key=row["placement_id"],
                site_key=row["site_id"],
                url=row["url"],
                categories=categories,
                requests=row["requests"],
                fits=wanted is not None and wanted.fits(categories),
            )
        )
    return visits


async def _read_creatives(
    connection: Connection, pages: Sequence[PageShare], own: UUID | None, campaigns_max: int
) -> list[CreativeRow]:
    """Read the creatives of campaigns that want one of the pages, and of the one that is asked about."""
    categories: set[str] = set()
    for category in {category for one in pages for category, _ in one.page.categories}:
        categories |= {category, *load_content().list_ancestors(category)}
    rows = await connection.fetch(WANTING, own, sorted(categories), campaigns_max)
    keys = [row[0] for row in rows]
    return [row async for group in iter_creatives(connection, keys) for row in group] if keys else []
