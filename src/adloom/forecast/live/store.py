"""Reads the running installation for a simulation: catalog, budgets, the counts of seven days, and contextual slots."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.auction.learned import LEARNED
from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.config.cap_counts import read_counts
from adloom.budgets.config.catalog_store import load_rows
from adloom.budgets.status_store import load_states
from adloom.core.ids import CampaignId
from adloom.events.ctr.store import read_model_state
from adloom.forecast.live.page_traffic import (
    NO_CONTEXTUAL,
    ContextualRows,
    PageShare,
    PageVisits,
    SlotHour,
    WantedPages,
    group_pages,
)
from adloom.forecast.live.rows import (
    LOOKED_BACK,
    CampaignResults,
    LiveRows,
    SeenHour,
    UnsoldHour,
    keep_serving,
    keep_showing,
    start_campaign,
)
from adloom.pages.model import PageCategory
from adloom.runtime.postgres import Connection
from adloom.serving.index import store
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.contextual_store import iter_creatives, read_site_rows
from adloom.serving.index.rows import AssignmentRow, Delivery
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
              AND NOT EXISTS (SELECT FROM jsonb_array_elements(page.categories) AS category
                               WHERE category ->> 'id' = ANY ($5))
       ))
     ORDER BY it.requests DESC, 1 LIMIT $6
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
# Those with the highest bids for a thousand impressions, if there are very many.
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
    """Read all slots, or those with pages that a campaign wants, and the campaigns that bid there."""
    if wanted is not None and not wanted.is_any:
        return NO_CONTEXTUAL
    found = await connection.fetch(
        SLOTS,
        first,
        end,
        None if wanted is None else sorted(wanted.categories),
        wanted is not None and wanted.takes_filler,
        [] if wanted is None else sorted(wanted.excluded),
        bounds.slots_max,
    )
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


# How much of the contextual market is read: of a whole installation, and for a question that is answered in seconds.
WHOLE: Final = ContextualBounds(slots_max=1_000, pages_max=2_000, campaigns_max=10_000)
OF_ONE: Final = ContextualBounds(slots_max=20, pages_max=30, campaigns_max=150)
PLACEMENTS: Final = "SELECT id FROM placements WHERE delivery <> 'contextual'"
HAS_SLOTS: Final = "SELECT EXISTS (SELECT FROM placements WHERE delivery = 'contextual' AND is_active)"
# The busiest ones of a campaign that has very many.
OF_CAMPAIGN: Final = """
    SELECT link.placement_id
      FROM (SELECT DISTINCT assignment.placement_id FROM banner_assignments AS assignment
              JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
             WHERE campaign.public_id = $1) AS link
      JOIN placements AS placement ON placement.id = link.placement_id AND placement.delivery <> 'contextual'
      LEFT JOIN (SELECT placement_id, sum(impressions) AS impressions FROM events.event_counts
                  WHERE hour >= $2 AND hour < $3 GROUP BY 1) AS had USING (placement_id)
     ORDER BY had.impressions DESC NULLS LAST, link.placement_id LIMIT $4
"""
NAMES: Final = "SELECT id, name FROM campaigns WHERE id = ANY ($1::integer[])"
SEEN: Final = """
    SELECT placement_id AS placement_key, hour, country_code AS country, device_type AS device,
           sum(shown)::bigint AS impressions, max(shown)::bigint AS most
      FROM (
          SELECT placement_id, hour, country_code, device_type, banner_id,
                 sum(impressions - invalid_impressions) AS shown
            FROM events.event_counts
           WHERE hour >= $1 AND hour < $2 AND placement_id = ANY ($3::integer[])
           GROUP BY 1, 2, 3, 4, 5
      ) AS it
     GROUP BY 1, 2, 3, 4 HAVING sum(shown) > 0
"""
UNSOLD: Final = """
    SELECT it.placement_type, placement.id AS placement_key, date_trunc('hour', it.auction_time, 'UTC') AS hour,
           it.context ->> 'country' AS country, it.context ->> 'device' AS device, count(*)::bigint AS auctions
      FROM auction.auctions AS it
      LEFT JOIN placements AS placement ON placement.public_id = it.placement_id
     WHERE it.auction_time >= $1 AND it.auction_time < $2 AND it.winning_campaign_id IS NULL
       AND (placement.id = ANY ($3::integer[]) OR (it.placement_id IS NULL AND it.placement_type = ANY ($4::text[])))
     GROUP BY 1, 2, 3, 4, 5
"""
RESULTS: Final = """
    SELECT campaign_id AS campaign_key, placement_id AS placement_key,
           sum(impressions - invalid_impressions)::bigint AS impressions,
           sum(clicks - invalid_clicks)::bigint AS clicks, sum(conversions)::bigint AS conversions
      FROM events.event_counts
     WHERE hour >= $1 AND hour < $2 AND campaign_id = ANY ($3::integer[])
     GROUP BY 1, 2
"""


async def read_installation(connection: Connection, *, now: datetime) -> LiveRows:
    """Read everything."""
    first, end = _find_week(now)
    async with store.read_one_version(connection):
        keys = [row[0] for row in await connection.fetch(PLACEMENTS)]
        contextual = await read_contextual(connection, first, end, WHOLE, now=now)
        wants_pages = bool(await connection.fetchval(HAS_SLOTS))
        return await _read(connection, keys, contextual, now, wants_pages=wants_pages)


async def read_surroundings(
    connection: Connection, campaign_id: UUID, *, wanted: WantedPages, now: datetime, placements_max: int
) -> LiveRows:
    """Read the placements of one campaign and the pages that it wants, and all campaigns that bid there."""
    first, end = _find_week(now)
    async with store.read_one_version(connection):
        rows = await connection.fetch(OF_CAMPAIGN, campaign_id, first, end, placements_max)
        contextual = await read_contextual(
            connection, first, end, OF_ONE, now=now, own=campaign_id, wanted=wanted
        )
        keys = [row[0] for row in rows]
        return await _read(connection, keys, contextual, now, own=campaign_id, wants_pages=wanted.is_any)


async def _read(  # noqa: PLR0913 - what it is about
    connection: Connection,
    direct_keys: Sequence[int],
    contextual: ContextualRows,
    now: datetime,
    *,
    own: UUID | None = None,
    wants_pages: bool = False,
) -> LiveRows:
    first, end = _find_week(now)
    keys = [*direct_keys, *contextual.placement_keys]
    contextual = msgspec.structs.replace(contextual, creatives=keep_showing(contextual.creatives, own))
    placements = [keep_serving(one, own) async for one in store.iter_placements(connection, keys)]
    rows = {row.assignment.campaign_key: row.assignment for row in contextual.creatives} | {
        row.campaign_key: row for one in placements for row in one.assignments
    }
    campaign_keys = sorted(rows)
    campaigns = await load_rows(connection, [rows[key].campaign_id for key in campaign_keys], [])
    types = sorted(
        {one.placement.placement_type for one in placements if one.placement.delivery is Delivery.AUCTION}
    )
    is_learned = any(one.placement.scoring == LEARNED for one in placements)
    results = await connection.fetch(RESULTS, first, end, campaign_keys)
    had = [msgspec.convert(dict(row), CampaignResults) for row in results]
    capped = [key for key in campaign_keys if rows[key].caps is not None]
    return LiveRows(
        now=now,
        placements=placements,
        campaigns=[start_campaign(row) if row.id == own else row for row in campaigns.campaigns],
        names={row[0]: row[1] for row in await connection.fetch(NAMES, campaign_keys)},
        spent=await _read_spent(connection, list(rows.values())),
        counts=await read_counts(connection, capped) if capped else {},
        seen=_convert(await connection.fetch(SEEN, first, end, keys), SeenHour),
        unsold=_convert(await connection.fetch(UNSOLD, first, end, keys, types), UnsoldHour),
        results=[one for one in had if one.placement_key in set(keys)],
        shares=_compute_shares(had, set(keys)),
        contextual=contextual,
        wants_pages=wants_pages,
        click_model=await read_model_state(connection) if is_learned else None,
    )


def _compute_shares(results: Sequence[CampaignResults], keys: set[int]) -> dict[int, float]:
    """Return how much of each campaign's delivery was on some placements."""
    everywhere: dict[int, int] = {}
    here: dict[int, int] = {}
    for one in results:
        everywhere[one.campaign_key] = everywhere.get(one.campaign_key, 0) + one.impressions
        if one.placement_key in keys:
            here[one.campaign_key] = here.get(one.campaign_key, 0) + one.impressions
    return {key: here.get(key, 0) / total for key, total in everywhere.items() if total}


async def _read_spent(connection: Connection, rows: Sequence[AssignmentRow]) -> dict[int, int]:
    """Return what campaigns have spent in their lives; a state that this version cannot read has spent nothing."""
    addresses = {
        row.campaign_key: make_campaign_address(CampaignId(row.campaign_id), row.advertiser_id)
        for row in rows
        if row.is_limited
    }
    states = await load_states(connection, addresses.values())
    return {
        key: state.spent_total
        for key, address in addresses.items()
        if isinstance(state := states.get(address), CampaignState)
    }


def _find_week(now: datetime) -> tuple[datetime, datetime]:
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return end - LOOKED_BACK, end


def _convert(records: Sequence[Any], kind: type[Any]) -> list[Any]:
    return [msgspec.convert(dict(record), kind) for record in records]
