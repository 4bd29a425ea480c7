"""Reads what changed on sites since somebody looked."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.live.approvals import CHECKSUM
from adloom.pages.model import SitePage
from adloom.pages.store import SOURCE
from adloom.runtime.postgres import Connection

STATES: Final = f"""
    SELECT site.public_id AS site_id, coalesce(newest.version, 0) AS changed, coalesce(removal.version, 0) AS removed,
           coalesce(({CHECKSUM}), 0)::text AS approvals,
           crawl.public_id AS id, crawl.state, crawl.started_at, crawl.finished_at, crawl.pages_fetched,
           crawl.pages_classified, crawl.pages_unchanged, crawl.pages_failed, crawl.reason
      FROM sites AS site
      LEFT JOIN LATERAL (
           SELECT version FROM site_pages WHERE site_id = site.id ORDER BY version DESC LIMIT 1
      ) AS newest ON true
      LEFT JOIN site_page_removals AS removal ON removal.site_id = site.id
      LEFT JOIN LATERAL (
           SELECT * FROM site_crawls WHERE site_id = site.id ORDER BY created_at DESC, id DESC LIMIT 1
      ) AS crawl ON true
     WHERE site.public_id = ANY ($1::uuid[])
"""  # noqa: S608 - our own
CHANGED: Final = f"""
    SELECT {SOURCE.columns} FROM {SOURCE.tables}
     WHERE site.public_id = $1 AND it.version > $2 ORDER BY it.version LIMIT $3
"""  # noqa: S608 - our own names


class CrawlEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far the latest crawl of a site is."""

    id: UUID
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    pages_fetched: int
    pages_classified: int
    pages_unchanged: int
    pages_failed: int
    reason: str | None


class LiveSite(msgspec.Struct, frozen=True):
    """The versions of a site's last changed and last removed page, its latest crawl, a checksum of its approvals."""

    changed: int
    removed: int
    crawl: CrawlEvent | None
    approvals: str


async def read_states(connection: Connection, site_ids: Sequence[SiteId]) -> dict[SiteId, LiveSite]:
    """Read the states of sites; those that are gone are left out."""
    states: dict[SiteId, LiveSite] = {}
    for row in await connection.fetch(STATES, list(site_ids)):
        crawl = None
        if row["id"] is not None:
            crawl = CrawlEvent(**{name: row[name] for name in CrawlEvent.__struct_fields__})
        states[SiteId(row["site_id"])] = LiveSite(row["changed"], row["removed"], crawl, row["approvals"])
    return states


async def read_changed(
    connection: Connection, site_id: SiteId, since: int, *, count_max: int
) -> list[SitePage]:
    """Read the pages that changed after a version, in the order in which they did."""
    rows = await connection.fetch(CHANGED, site_id, since, count_max)
    return [msgspec.convert(dict(row), SitePage) for row in rows]
