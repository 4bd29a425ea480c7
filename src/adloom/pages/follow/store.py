"""Reads pages for those who hold them in memory: versions of sites, all pages of one, or those since a version."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.follow.page_table import PageEntry, PageTable, build_table
from adloom.pages.model import PAGES_HELD_MAX, PageCategory
from adloom.runtime.postgres import Connection, Pool, Record, read_snapshot

ROWS_A_BATCH: Final = 200  # About a millisecond: requests are answered in between.

VERSIONS: Final = """
    SELECT site.public_id, coalesce(newest.version, 0), coalesce(removal.version, 0)
      FROM sites AS site
      LEFT JOIN LATERAL (
           SELECT version FROM site_pages WHERE site_id = site.id ORDER BY version DESC LIMIT 1
      ) AS newest ON true
      LEFT JOIN site_page_removals AS removal ON removal.site_id = site.id
     WHERE {among}
"""
VERSIONS_OF_SOME: Final = VERSIONS.format(among="site.public_id = ANY ($1::uuid[])")
VERSIONS_OF_ALL: Final = VERSIONS.format(among="newest.version IS NOT NULL OR removal.version IS NOT NULL")
COLUMNS: Final = "url, version, categories::text AS categories, classified_at, expires_at"
ALL_PAGES: Final = f"""
    SELECT {COLUMNS} FROM site_pages
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1)
     ORDER BY classified_at DESC NULLS LAST, version DESC LIMIT $2
"""  # noqa: S608 - a constant
CHANGED_PAGES: Final = f"""
    SELECT {COLUMNS} FROM site_pages
     WHERE site_id = (SELECT id FROM sites WHERE public_id = $1) AND version > $2
     ORDER BY version
"""  # noqa: S608 - a constant

# One statement, which sees one moment: after most notices it is all that is asked. A site without changes has a row.
FEW_CHANGES: Final = f"""
    SELECT coalesce(removal.version, 0) AS removed, page.*
      FROM sites AS site
      LEFT JOIN site_page_removals AS removal ON removal.site_id = site.id
      LEFT JOIN LATERAL (
           SELECT {COLUMNS} FROM site_pages WHERE site_id = site.id AND version > $2 ORDER BY version LIMIT $3
      ) AS page ON true
     WHERE site.public_id = $1
     ORDER BY page.version
"""  # noqa: S608 - a constant

_decode_categories: Final = msgspec.json.Decoder(tuple[PageCategory, ...]).decode


class SiteVersions(msgspec.Struct, frozen=True):
    """The version of a site's last change of a page, and that of the last removal of one."""

    changed: int = 0
    removed: int = 0

    @property
    def newest(self) -> int:
        return max(self.changed, self.removed)


async def read_versions(pool: Pool, site_ids: Sequence[UUID] | None = None) -> dict[SiteId, SiteVersions]:
    """Read the versions of sites; without ids, of all that have or had pages. Sites that are gone are left out."""
    if site_ids is None:
        rows = await pool.fetch(VERSIONS_OF_ALL)
    else:
        rows = await pool.fetch(VERSIONS_OF_SOME, site_ids)
    return {SiteId(site_id): SiteVersions(changed, removed) for site_id, changed, removed in rows}


async def read_table(pool: Pool, site_id: SiteId, *, pages_max: int = PAGES_HELD_MAX) -> PageTable:
    """Read all pages of a site."""
    async with read_snapshot(pool) as connection:
        row = await connection.fetchrow(VERSIONS_OF_SOME, [site_id])
        version = 0 if row is None else max(row[1], row[2])
        entries = [entry async for entry in _iter_entries(connection, ALL_PAGES, site_id, pages_max)]
    return build_table(entries, version=version, pages_max=pages_max)


async def read_changes(pool: Pool, site_id: SiteId, since: int) -> list[PageEntry] | None:
    """Read the pages that changed after a version, or None if some were removed: then all have to be read again."""
    rows = await pool.fetch(FEW_CHANGES, site_id, since, ROWS_A_BATCH)
    if not rows or rows[0]["removed"] > since:
        return None
    if len(rows) < ROWS_A_BATCH:
        return [_build_entry(row[1:]) for row in rows if row["url"] is not None]
    async with read_snapshot(pool) as connection:
        row = await connection.fetchrow(VERSIONS_OF_SOME, [site_id])
        if row is None or row[2] > since:
            return None
        return [entry async for entry in _iter_entries(connection, CHANGED_PAGES, site_id, since)]


async def _iter_entries(connection: Connection, query: str, *values: object) -> AsyncGenerator[PageEntry]:
    cursor = await connection.cursor(query, *values)
    while records := await cursor.fetch(ROWS_A_BATCH):
        for record in records:
            yield _build_entry(record)


def _build_entry(record: Record | tuple[Any, ...]) -> PageEntry:
    url, version, categories, classified_at, expires_at = record
    return PageEntry(url, version, _decode_categories(categories), classified_at, expires_at)
