"""Reads recorded auctions of campaigns with a budget and a target, for the training of bid strategies."""

from collections.abc import AsyncGenerator
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import msgspec

from adloom.events.auction_log.row import BidView
from adloom.events.conversions.store import has_conversions
from adloom.runtime.postgres import Connection

ROWS_A_FETCH: Final = 500

CONVERSIONS_MIN: Final = 10  # Fewer say nothing about how many clicks one takes.

# Money in units; a campaign without conversions has its target per click.
_CAMPAIGNS: Final = f"""
    SELECT public_id, budget_daily_paisa / 100.0 AS budget, target_cpa_micros / 1000000.0 AS target,
           CASE WHEN {has_conversions("it")} THEN coalesce(counted.conversions, 0) ELSE 0 END AS conversions,
           coalesce(counted.clicks, 0) AS clicks
      FROM campaigns AS it
      LEFT JOIN LATERAL (
          SELECT sum(conversions)::bigint AS conversions, sum(clicks - invalid_clicks)::bigint AS clicks
            FROM events.event_counts WHERE campaign_id = it.id AND hour >= $1 AND hour < $2
      ) AS counted ON true
     WHERE budget_daily_paisa > 0 AND target_cpa_micros > 0 AND deleted_at IS NULL
     ORDER BY public_id
"""  # noqa: S608 - our own words
_COUNT: Final = """
    SELECT count(*) FROM auction.auctions
     WHERE auction_time >= $1 AND auction_time < $2 AND bids IS NOT NULL AND campaign_ids && $3::uuid[]
"""
# An even sample that is the same each time: by the id, which says nothing about the auction.
_AUCTIONS: Final = """
    SELECT auction_time, floor_cpm, bids::text AS bids
      FROM auction.auctions
     WHERE auction_time >= $1 AND auction_time < $2 AND bids IS NOT NULL AND campaign_ids && $3::uuid[]
       AND abs(hashtext(id::text)::bigint) % $4 = 0
     ORDER BY auction_time, id
"""


class TargetedCampaign(msgspec.Struct, frozen=True):
    """A campaign that can be learned from."""

    campaign_id: UUID
    budget: float
    target: float
    conversion_rate: float = 1.0  # Conversions of a click, or 1 where the target is per click.


class RecordedAuction(msgspec.Struct, frozen=True):
    """An auction that some of them took part in."""

    at: datetime
    floor_cpm: Decimal
    bids: tuple[BidView, ...]


_decode_bids: Final = msgspec.json.Decoder(tuple[BidView, ...]).decode


async def load_targeted_campaigns(
    connection: Connection, first: datetime, end: datetime
) -> list[TargetedCampaign]:
    """Read the campaigns, with the conversions that their clicks brought in a time."""
    rows = await connection.fetch(_CAMPAIGNS, first, end)
    return [
        TargetedCampaign(
            row["public_id"],
            float(row["budget"]),
            float(row["target"]),
            compute_conversion_rate(row["conversions"], row["clicks"]),
        )
        for row in rows
    ]


def compute_conversion_rate(conversions: int, clicks: int) -> float:
    """Return how many conversions a click brings; 1 where there are too few to say: then a click is the goal."""
    if conversions < CONVERSIONS_MIN:
        return 1.0
    return min(1.0, conversions / max(clicks, 1))


async def count_auctions(
    connection: Connection, first: datetime, end: datetime, campaigns: list[UUID]
) -> int:
    return int(await connection.fetchval(_COUNT, first, end, campaigns))


async def read_auctions(
    connection: Connection, first: datetime, end: datetime, campaigns: list[UUID], *, one_in: int
) -> AsyncGenerator[RecordedAuction]:
    """Read one in so many auctions; within a transaction."""
    cursor = connection.cursor(_AUCTIONS, first, end, campaigns, one_in, prefetch=ROWS_A_FETCH)
    async for row in cursor:
        yield RecordedAuction(row["auction_time"], row["floor_cpm"], _decode_bids(row["bids"]))
