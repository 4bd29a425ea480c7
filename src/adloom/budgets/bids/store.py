"""Bid decisions in PostgreSQL, and the counts that decisions need.

Decisions of today and yesterday are kept; those before are deleted with the first decision of a day.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.bid_model import BidCounts, BidRow, FoundCounts, MultiplierRequest
from adloom.core.ids import CampaignId
from adloom.events.conversions.store import has_conversions
from adloom.runtime.postgres import Connection, Pool, raise_if_away

DECISIONS_MAX: Final = 1_000  # Of a day, that readers get: the newest.

COUNTS: Final = f"""
    SELECT campaign.public_id AS id, coalesce(sum(it.impressions - it.invalid_impressions), 0)::bigint AS impressions,
           coalesce(sum(it.clicks - it.invalid_clicks), 0)::bigint AS clicks,
           coalesce(sum(it.conversions), 0)::bigint AS conversions,
           {has_conversions("campaign")} AS has_conversions
      FROM unnest($1::uuid[], $2::timestamptz[]) AS asked (id, since)
      JOIN campaigns AS campaign ON campaign.public_id = asked.id
      LEFT JOIN events.event_counts AS it ON it.campaign_id = campaign.id AND it.hour >= asked.since
     GROUP BY campaign.id
"""  # noqa: S608 - our own words
# A state that is stored again after a crash repeats its decision.
ADD: Final = """
    INSERT INTO bid_decisions (
        campaign_id, day, at, bid_window, strategy, multiplier, wanted, reason, guard_limit, note, spent_micros,
        impressions, clicks, conversions, shadows
    )
    SELECT * FROM unnest(
        $1::uuid[], $2::date[], $3::timestamptz[], $4::integer[], $5::text[], $6::float8[], $7::float8[], $8::text[],
        $9::float8[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::jsonb[]
    )
    ON CONFLICT (campaign_id, at) DO NOTHING
"""
FORGET: Final = """
    DELETE FROM bid_decisions AS it
     USING unnest($1::uuid[], $2::date[]) AS begun (campaign_id, day)
     WHERE it.campaign_id = begun.campaign_id AND it.day < begun.day - 1
"""
OF_A_DAY: Final = """
    SELECT campaign_id, day, at, bid_window AS window, strategy, multiplier, wanted, reason, guard_limit AS limit, note,
           spent_micros AS spent, impressions, clicks, conversions, shadows, false AS is_first
      FROM (SELECT * FROM bid_decisions WHERE campaign_id = $1 AND day = $2 ORDER BY at DESC LIMIT $3) AS newest
     ORDER BY at
"""


class BidCountStore:
    """Reads what campaigns' ads have brought; UnavailableError when PostgreSQL is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, requests: Sequence[MultiplierRequest]) -> Mapping[UUID, FoundCounts]:
        """Return the counts of campaigns since the hour that each names; those that are gone are left out."""
        with raise_if_away("What bids have brought cannot be read"):
            rows = await self._pool.fetch(
                COUNTS, [one.campaign_id for one in requests], [one.counts_since for one in requests]
            )
        return {
            row["id"]: FoundCounts(
                BidCounts(row["impressions"], row["clicks"], row["conversions"]), row["has_conversions"]
            )
            for row in rows
        }


async def write_decisions(connection: Connection, rows: Sequence[BidRow]) -> None:
    await connection.execute(
        ADD,
        [row.campaign_id for row in rows],
        [row.day for row in rows],
        [row.at for row in rows],
        [row.window for row in rows],
        [row.strategy.value for row in rows],
        [row.multiplier for row in rows],
        [row.wanted for row in rows],
        [row.reason for row in rows],
        [row.limit for row in rows],
        [row.note for row in rows],
        [row.spent for row in rows],
        [row.impressions for row in rows],
        [row.clicks for row in rows],
        [row.conversions for row in rows],
        [msgspec.json.encode(row.shadows).decode() for row in rows],
    )
    first = [row for row in rows if row.is_first]
    if first:
        await connection.execute(FORGET, [row.campaign_id for row in first], [row.day for row in first])


async def load_decisions(connection: Connection, campaign_id: CampaignId, day: date) -> list[BidRow]:
    """Return a day's decisions, the newest last."""
    rows = await connection.fetch(OF_A_DAY, campaign_id, day, DECISIONS_MAX)
    return [msgspec.convert({**row, "shadows": msgspec.json.decode(row["shadows"])}, BidRow) for row in rows]
