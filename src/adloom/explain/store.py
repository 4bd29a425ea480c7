"""Reads what is to be explained as the index would, with the counts and missing budgets of its campaigns."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.addresses import make_advertiser_address, make_campaign_address
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.bids import get_multiplier
from adloom.budgets.campaign.pace import get_throttle
from adloom.budgets.config.cap_counts import read_counts
from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.budgets.status_store import load_states
from adloom.catalog.campaign.model import Campaign
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.frequency.windows import Window
from adloom.explain.budget import find_missing_budget
from adloom.explain.traffic import (
    LOST,
    REMOVED,
    WON,
    AuctionTally,
    CampaignFacts,
    CampaignTraffic,
    SeenImpressions,
)
from adloom.market.report.reach_store import read_reach
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import Valkey
from adloom.serving.index import contextual_store, store
from adloom.serving.index.bid_block import lower_bid
from adloom.serving.index.rows import AssignmentRow, Delivery, PlacementRows, build_lease_terms

AUCTIONS_MAX: Final = 5_000  # The last ones say enough, and each has to be opened.
UNNAMED: Final = "removed"

PLACEMENT_KEY = """
    SELECT placement.id FROM placements AS placement
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
     WHERE placement.slug = $1 AND ($2::uuid IS NULL OR publisher.public_id = $2)
"""
MARKET_KEYS = """
    SELECT placement.id FROM placements AS placement
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
     WHERE placement.delivery = 'auction' AND placement.is_active AND publisher.deleted_at IS NULL
       AND ($1::text IS NULL OR placement.slug = $1)
       AND ($2::text IS NULL OR placement.placement_type = $2)
     ORDER BY placement.id
"""
CAMPAIGN_PLACEMENT_KEYS = """
    SELECT DISTINCT assignment.placement_id FROM banner_assignments AS assignment
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
     WHERE campaign.public_id = $1
"""
SEEN = """
    SELECT it.placement_id AS placement_key, it.hour, it.country_code AS country, it.device_type AS device,
           sum(it.impressions)::bigint AS impressions,
           coalesce(sum(it.impressions) FILTER (WHERE it.campaign_id = own.id), 0)::bigint AS own_impressions,
           coalesce(sum(it.clicks) FILTER (WHERE it.campaign_id = own.id), 0)::bigint AS own_clicks
      FROM events.event_counts AS it, (SELECT id FROM campaigns WHERE public_id = $1) AS own
     WHERE it.hour >= $2 AND it.placement_id = ANY ($3::integer[])
     GROUP BY 1, 2, 3, 4
"""
CAMPAIGN_KEY = "SELECT id FROM campaigns WHERE public_id = $1"
CONTEXTUAL_SEEN = """
    SELECT coalesce(sum(it.impressions), 0)::bigint, coalesce(sum(it.clicks), 0)::bigint
      FROM events.event_counts AS it
      JOIN placements AS placement ON placement.id = it.placement_id AND placement.delivery = 'contextual'
     WHERE it.hour >= $2 AND it.campaign_id = $1
"""
# A campaign may bid with several banners: the one that came furthest counts.
TALLY = """
    WITH held AS (
        SELECT it.bids, it.winning_ecpm FROM auction.auctions AS it
         WHERE it.auction_time >= $2 AND it.placement_type = ANY ($3::text[])
         ORDER BY it.auction_time DESC LIMIT $4
    )
    SELECT bid.outcome, bid.step, count(*) AS auctions, sum(bid.ecpm) AS ecpm, sum(held.winning_ecpm) AS winning_ecpm
      FROM held LEFT JOIN LATERAL (
          SELECT one ->> 'outcome' AS outcome, one ->> 'removedBy' AS step, (one ->> 'ecpm')::float AS ecpm
            FROM jsonb_array_elements(coalesce(held.bids, '[]')) AS one
           WHERE one ->> 'campaignId' = $1::text
           ORDER BY array_position(ARRAY['won', 'lost'], one ->> 'outcome') NULLS LAST LIMIT 1
      ) AS bid ON TRUE
     GROUP BY 1, 2
"""


class CampaignStatuses(msgspec.Struct, frozen=True, kw_only=True):
    """By campaign: the budget that it lacks, the share of offers that its pace leaves out, what its bids are times."""

    missing: dict[int, str] = {}
    throttles: dict[int, float] = {}
    multipliers: dict[int, float] = {}

    def lower_bid_of(self, row: AssignmentRow) -> AssignmentRow:
        """Return an assignment with what its campaign bids now."""
        multiplier = self.multipliers.get(row.campaign_key, 1.0)
        if multiplier >= 1 or not row.bid:
            return row
        return msgspec.structs.replace(row, bid=lower_bid(row.bid, multiplier))


class ExplainedRows(msgspec.Struct, frozen=True, kw_only=True):
    """Placements with their assignments; by campaign, its lifetime counts, the budget that it lacks, and its pace."""

    placements: Sequence[PlacementRows]
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]
    throttles: Mapping[int, float]


async def read_placement(
    connection: Connection, slug: str, *, publisher_id: UUID | None, now: datetime
) -> ExplainedRows | None:
    """Read a placement; with a publisher, only one of its own."""
    async with store.read_one_version(connection):
        key = await connection.fetchval(PLACEMENT_KEY, slug, publisher_id)
        return None if key is None else await _read_rows(connection, [key], now)


async def read_market(
    connection: Connection, *, slug: str | None, placement_type: str | None, now: datetime
) -> ExplainedRows | None:
    """Read a market; None if nothing of that slug and type is auctioned."""
    async with store.read_one_version(connection):
        keys = [row[0] for row in await connection.fetch(MARKET_KEYS, slug, placement_type)]
        return await _read_rows(connection, keys, now) if keys else None


async def read_campaign(
    connection: Connection, campaign: Campaign, *, since: datetime, now: datetime
) -> CampaignFacts:
    """Read a campaign's assignments, and what happened on their placements since a moment."""
    async with store.read_one_version(connection):
        keys = [row[0] for row in await connection.fetch(CAMPAIGN_PLACEMENT_KEYS, campaign.id)]
        found = [
            PlacementRows(one.placement, [row for row in one.assignments if row.campaign_id == campaign.id])
            async for one in store.iter_placements(connection, keys)
        ]
        own = await connection.fetchval(CAMPAIGN_KEY, campaign.id)
        creatives = [
            row.assignment
            async for rows in contextual_store.iter_creatives(connection, [own])
            for row in rows
        ]
        rows = [*(row for one in found for row in one.assignments), *creatives]
        counts = await read_counts(connection, [own])
        standings = await read_standings(connection, rows, now)
        multiplier = standings.multipliers.get(own, 1.0)
        types = {one.placement.placement_type for one in found if one.placement.delivery is Delivery.AUCTION}
        seen = await connection.fetch(SEEN, campaign.id, since, keys)
        tally = await _read_tally(connection, campaign.id, since, sorted(types)) if types else AuctionTally()
        [contextual] = await connection.fetch(CONTEXTUAL_SEEN, own, since)
        return CampaignFacts(
            campaign=campaign,
            now=now,
            placements=found,
            creatives=creatives,
            reach=await read_reach(connection, campaign, now=now, multiplier=multiplier),
            counts=counts.get(own, NO_COUNTS),
            missing_budget=standings.missing.get(own),
            throttle=standings.throttles.get(own, 0.0),
            multiplier=multiplier,
            traffic=CampaignTraffic(
                since=since,
                seen=[msgspec.convert(dict(row), SeenImpressions) for row in seen],
                auctions=tally,
                contextual_impressions=contextual[0],
                contextual_clicks=contextual[1],
            ),
        )


async def _read_rows(connection: Connection, keys: Sequence[int], now: datetime) -> ExplainedRows:
    placements = [one async for one in store.iter_placements(connection, keys)]
    rows = [row for one in placements for row in one.assignments]
    capped = sorted({row.campaign_key for row in rows if row.caps is not None})
    standings = await read_standings(connection, rows, now)
    return ExplainedRows(
        placements=[
            PlacementRows(one.placement, [standings.lower_bid_of(row) for row in one.assignments])
            if one.placement.delivery is Delivery.AUCTION
            else one
            for one in placements
        ],
        counts=await read_counts(connection, capped) if capped else {},
        budgets=standings.missing,
        throttles=standings.throttles,
    )


async def read_standings(
    connection: Connection, rows: Iterable[AssignmentRow], now: datetime
) -> CampaignStatuses:
    """Read the budgets of the campaigns whose offers need one."""
    limited = {row.campaign_key: row for row in rows if row.is_limited and row.price.cost > 0}
    campaigns = {
        key: make_campaign_address(row.campaign_id, row.advertiser_id) for key, row in limited.items()
    }
    payers = {
        key: make_advertiser_address(row.advertiser_id)
        for key, row in limited.items()
        if row.advertiser_id is not None
    }
    states = await load_states(connection, {*campaigns.values(), *payers.values()})
    found = CampaignStatuses()
    for key, row in limited.items():
        campaign = states.get(campaigns[key])
        if campaign is None:
            continue  # One that is not known yet has spent nothing.
        payer = states.get(payers[key]) if key in payers else None
        missing = find_missing_budget(campaign, payer, cost=build_lease_terms(row).cost, now=now)
        if missing is not None:
            found.missing[key] = missing
        standing = campaign_step.advance_to(campaign, now)
        if standing.config is not None:
            found.throttles[key] = get_throttle(standing)
            found.multipliers[key] = get_multiplier(standing)
    return found


async def _read_tally(
    connection: Connection, campaign_id: UUID, since: datetime, types: Sequence[str]
) -> AuctionTally:
    rows = await connection.fetch(TALLY, str(campaign_id), since, types, AUCTIONS_MAX)
    ended = {row["outcome"]: row for row in rows if row["outcome"] in {WON, LOST}}
    lost = ended.get(LOST)
    return AuctionTally(
        held=sum(row["auctions"] for row in rows),
        won=ended[WON]["auctions"] if WON in ended else 0,
        lost=lost["auctions"] if lost else 0,
        removed={row["step"] or UNNAMED: row["auctions"] for row in rows if row["outcome"] == REMOVED},
        ecpm=float(lost["ecpm"] or 0) / lost["auctions"] if lost else None,
        winning_ecpm=float(lost["winning_ecpm"] or 0) / lost["auctions"] if lost else None,
    )


async def find_seen_enough(
    valkey: Valkey, rows: Iterable[AssignmentRow], user_id: UUID, now: datetime
) -> frozenset[int]:
    """Return their keys; UnavailableError where it is not known."""
    capped = {str(row.banner_id): row for row in rows if row.frequency}
    if not capped:
        return frozenset()
    found = await FrequencyCounters(valkey).read([(str(user_id),)], dict.fromkeys(Window, 1), now)
    return frozenset(
        row.banner_key
        for window, banner, times in found.get(0, ())
        if (row := capped.get(banner)) is not None
        and any(cap.window is window and times >= cap.impressions_max for cap in row.frequency)
    )
