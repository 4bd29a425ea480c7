"""Reads shortlists for those who hold them in memory, and for people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.market.shortlist.model import Shortlist
from adloom.market.shortlist.table import ListedPage, ShortlistTable
from adloom.runtime.postgres import Connection, Pool, Record, read_snapshot

ROWS_A_BATCH: Final = 200  # About a millisecond: requests are answered in between.

VERSIONS: Final = """
    SELECT site.public_id, coalesce(newest.version, 0)
      FROM sites AS site
      LEFT JOIN LATERAL (
           SELECT version FROM shortlists WHERE site_id = site.id ORDER BY version DESC LIMIT 1
      ) AS newest ON true
     WHERE site.public_id = ANY ($1::uuid[])
"""
CHANGED: Final = """
    SELECT url, version, slots::text, expires_at FROM shortlists
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND version > $2
     ORDER BY version
"""
OF_PAGE: Final = """
    SELECT slots::text, version, updated_at FROM shortlists
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND url = $2
"""
# Delivery serves nothing that has expired; a day later it has long read that the page is gone.
REMOVE_EXPIRED: Final = "DELETE FROM shortlists WHERE expires_at < now() - interval '1 day'"

_decode: Final = msgspec.json.Decoder(tuple[Shortlist, ...]).decode


async def read_versions(pool: Pool, site_ids: Sequence[UUID]) -> dict[SiteId, int]:
    """Read the versions of sites' last shortlists; sites that are gone are left out."""
    return {SiteId(row[0]): row[1] for row in await pool.fetch(VERSIONS, site_ids)}


async def read_changes(pool: Pool, site_id: SiteId, known: ShortlistTable) -> ShortlistTable:
    """Return a table with all that was written since a known one."""
    async with read_snapshot(pool) as connection:
        cursor = await connection.cursor(CHANGED, site_id, known.version)
        changes: list[ListedPage] = []
        while records := await cursor.fetch(ROWS_A_BATCH):
            changes += map(_build_page, records)
    return known.with_changes(changes)


async def remove_expired(pool: Pool) -> None:
    """Remove the shortlists of pages that are gone, or were not classified again."""
    await pool.execute(REMOVE_EXPIRED)


async def find_shortlists(
    connection: Connection, site_id: SiteId, url: str
) -> tuple[tuple[Shortlist, ...], int, datetime] | None:
    """Return the shortlists of a page, their version, and when they were written."""
    row = await connection.fetchrow(OF_PAGE, site_id, url)
    return None if row is None else (_decode(row[0]), row[1], row[2])


def _build_page(record: Record) -> ListedPage:
    url, version, slots, expires_at = record
    return ListedPage(url, version, {one.slot: one.candidates for one in _decode(slots)}, expires_at)
