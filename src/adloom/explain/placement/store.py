"""Reading one placement as the index would, with what an explanation needs besides."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from adloom.explain.budget_store import lacking_budgets
from adloom.runtime.postgres import Connection
from adloom.serving.background.cap_counts import read_counts
from adloom.serving.eligibility.caps import LifetimeCounts
from adloom.serving.index import store
from adloom.serving.index.rows import PlacementRows

PLACEMENT_KEY = """
    SELECT placement.id FROM placements AS placement
      LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
     WHERE placement.slug = $1 AND ($2::uuid IS NULL OR publisher.public_id = $2)
"""
OWNERS = """
    SELECT campaign.public_id, advertiser.public_id FROM campaigns AS campaign
      JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
     WHERE campaign.id = ANY ($1::integer[])
"""


class Explainable(msgspec.Struct, frozen=True, kw_only=True):
    """A placement with its candidates, whose their campaigns are, what those have had, and which budget they lack."""

    rows: PlacementRows
    owners: Mapping[UUID, UUID]
    counts: Mapping[int, LifetimeCounts]
    budgets: Mapping[int, str]


async def read(
    connection: Connection, slug: str, *, publisher_id: UUID | None, now: datetime
) -> Explainable | None:
    """Read a placement; with a publisher, only one of its own."""
    async with store.read_one_version(connection):
        key = await connection.fetchval(PLACEMENT_KEY, slug, publisher_id)
        if key is None:
            return None
        [rows] = [one async for one in store.iter_placements(connection, [key])]
        campaigns = sorted({one.campaign_key for one in rows.assignments})
        capped = sorted({one.campaign_key for one in rows.assignments if one.caps is not None})
        return Explainable(
            rows=rows,
            owners={row[0]: row[1] for row in await connection.fetch(OWNERS, campaigns)},
            counts=await read_counts(connection, capped) if capped else {},
            budgets=await lacking_budgets(connection, rows.assignments, now=now),
        )
