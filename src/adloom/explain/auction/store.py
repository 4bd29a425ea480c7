"""Reading the market of an auction as the index would, with what an explanation needs besides."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from adloom.explain.budget_store import lacking_budgets
from adloom.runtime.postgres import Connection
from adloom.serving.background.cap_counts import read_counts
from adloom.serving.eligibility.caps import LifetimeCounts
from adloom.serving.index import store
from adloom.serving.index.rows import PlacementRows

PLACEMENT_KEYS = """
    SELECT placement.id FROM placements AS placement
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
     WHERE placement.delivery = 'auction' AND placement.is_active AND publisher.deleted_at IS NULL
       AND ($1::text IS NULL OR placement.slug = $1)
       AND ($2::text IS NULL OR placement.placement_type = $2)
     ORDER BY placement.id
"""


class MarketRows(msgspec.Struct, frozen=True, kw_only=True):
    """The placements of a market with all that is assigned to them, what campaigns have had and which budget they lack."""

    placements: Sequence[PlacementRows]
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]


async def read(
    connection: Connection, *, slug: str | None, placement_type: str | None, now: datetime
) -> MarketRows | None:
    """Read a market; None where nothing of that slug and type is auctioned."""
    async with store.read_one_version(connection):
        keys = [row[0] for row in await connection.fetch(PLACEMENT_KEYS, slug, placement_type)]
        if not keys:
            return None
        placements = [one async for one in store.iter_placements(connection, keys)]
        rows = [row for one in placements for row in one.assignments]
        capped = sorted({row.campaign_key for row in rows if row.caps is not None})
        return MarketRows(
            placements=placements,
            counts=await read_counts(connection, capped) if capped else {},
            budgets=await lacking_budgets(connection, rows, now=now),
        )
