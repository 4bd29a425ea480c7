"""Reading a campaign with all that it is assigned to, and what happened there lately."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.explain.budget_store import lacking_budgets
from adloom.explain.campaign.traffic import LOST, REMOVED, WON, Auctions, Seen, Traffic
from adloom.runtime.postgres import Connection
from adloom.serving.background.cap_counts import read_counts
from adloom.serving.eligibility.caps import NO_COUNTS, LifetimeCounts
from adloom.serving.index import store
from adloom.serving.index.rows import Delivery, PlacementRows

AUCTIONS_MAX: Final = 5_000  # The last ones tell enough, and each has to be opened.

PLACEMENT_KEYS: Final = """
    SELECT DISTINCT assignment.placement_id FROM banner_assignments AS assignment
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
     WHERE campaign.public_id = $1
"""
SEEN: Final = """
    SELECT it.placement_id AS placement_key, it.hour, it.country_code AS country, it.device_type AS device,
           sum(it.impressions)::bigint AS impressions,
           coalesce(sum(it.impressions) FILTER (WHERE it.campaign_id = own.id), 0)::bigint AS own_impressions,
           coalesce(sum(it.clicks) FILTER (WHERE it.campaign_id = own.id), 0)::bigint AS own_clicks
      FROM events.event_counts AS it, (SELECT id FROM campaigns WHERE public_id = $1) AS own
     WHERE it.hour >= $2 AND it.placement_id = ANY ($3::integer[])
     GROUP BY 1, 2, 3, 4
"""
# A campaign may bid with several banners: the one that came furthest counts.
TALLY: Final = """
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
UNNAMED: Final = "removed"


class Deliverable(msgspec.Struct, frozen=True, kw_only=True):
    """Where a campaign may be shown, what it has had, which budget it lacks, and what happened there."""

    placements: Sequence[PlacementRows]
    counts: LifetimeCounts
    lacking: str | None
    traffic: Traffic


async def read(connection: Connection, campaign_id: UUID, *, since: datetime, now: datetime) -> Deliverable:
    """Read a campaign's assignments, and what happened on their placements since a moment."""
    async with store.read_one_version(connection):
        keys = [row[0] for row in await connection.fetch(PLACEMENT_KEYS, campaign_id)]
        found = [_narrowed(one, campaign_id) async for one in store.iter_placements(connection, keys)]
        rows = [row for one in found for row in one.assignments]
        own = rows[0].campaign_key if rows else 0
        counts = await read_counts(connection, [own])
        budgets = await lacking_budgets(connection, rows, now=now)
        types = sorted(
            {one.placement.placement_type for one in found if one.placement.delivery is Delivery.AUCTION}
        )
        return Deliverable(
            placements=found,
            counts=counts.get(own, NO_COUNTS),
            lacking=budgets.get(own),
            traffic=Traffic(
                since=since,
                seen=await _seen(connection, campaign_id, since, keys),
                auctions=await _auctions(connection, campaign_id, since, types) if types else Auctions(),
            ),
        )


def _narrowed(rows: PlacementRows, campaign_id: UUID) -> PlacementRows:
    return PlacementRows(rows.placement, [one for one in rows.assignments if one.campaign_id == campaign_id])


async def _seen(
    connection: Connection, campaign_id: UUID, since: datetime, keys: Sequence[int]
) -> list[Seen]:
    rows = await connection.fetch(SEEN, campaign_id, since, keys)
    return [msgspec.convert(dict(row), Seen) for row in rows]


async def _auctions(
    connection: Connection, campaign_id: UUID, since: datetime, types: Sequence[str]
) -> Auctions:
    rows = await connection.fetch(TALLY, str(campaign_id), since, types, AUCTIONS_MAX)
    ended = {row["outcome"]: row for row in rows if row["outcome"] in {WON, LOST}}
    lost = ended.get(LOST)
    return Auctions(
        held=sum(row["auctions"] for row in rows),
        won=ended[WON]["auctions"] if WON in ended else 0,
        lost=lost["auctions"] if lost else 0,
        removed={row["step"] or UNNAMED: row["auctions"] for row in rows if row["outcome"] == REMOVED},
        ecpm=float(lost["ecpm"] or 0) / lost["auctions"] if lost else None,
        winning_ecpm=float(lost["winning_ecpm"] or 0) / lost["auctions"] if lost else None,
    )
