"""Reads what changed on sites since somebody looked: crawls, pages, and what publishers decide about banners.

Approvals have no version, as two processes write them. A checksum over all of a site's rows says that one has
changed; then they are read, and compared with what was told last.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.model import SitePage
from adloom.pages.store import SOURCE
from adloom.runtime.postgres import Connection

PENDING: Final = "pending"
APPROVED: Final = "approved"
REVOKED: Final = "revoked"
# Events have the names of states, and one that says what a banner is no longer.
EVENT_NAMES: Final = (PENDING, APPROVED, "rejected", "flagged", REVOKED)
# Of a site with more than this, older ones are not followed.
ROWS_MAX: Final = 5_000
CHECKSUM: Final = """
    SELECT sum(hashtextextended(concat_ws(' ', approval.banner_id, approval.state, approval.decided_at), 0))
      FROM site_approvals AS approval WHERE approval.site_id = site.id
"""
# The campaign that a banner came with or, once that is deleted, another one that shows it.
CAMPAIGN_OF_APPROVAL: Final = """
    JOIN LATERAL (
        SELECT own.* FROM campaigns AS own
         WHERE own.deleted_at IS NULL AND (own.id = it.campaign_id OR EXISTS (
               SELECT FROM creatives AS creative
                WHERE creative.campaign_id = own.id AND creative.banner_id = it.banner_id))
         ORDER BY own.id = it.campaign_id DESC, own.status IN ('active', 'scheduled') DESC, own.id LIMIT 1
    ) AS campaign ON true
"""
ROWS: Final = f"""
    SELECT banner.public_id AS banner_id, campaign.public_id AS campaign_id, banner.title, it.state, it.reason,
           it.first_seen_at, it.decided_at
      FROM site_approvals AS it
      JOIN sites AS site ON site.id = it.site_id
      JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
      {CAMPAIGN_OF_APPROVAL}
     WHERE site.public_id = $1
     ORDER BY greatest(it.first_seen_at, it.decided_at) DESC, it.banner_id LIMIT $2
"""  # noqa: S608 - our own
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


class ApprovalEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A banner that bids for the site, and what holds for it now."""

    banner_id: UUID
    campaign_id: UUID
    title: str
    state: str
    reason: str | None
    first_seen_at: datetime
    decided_at: datetime | None


Approvals = Mapping[UUID, ApprovalEvent]


async def read_approvals(connection: Connection, site_id: SiteId) -> dict[UUID, ApprovalEvent]:
    """Read what holds for the banners of a site, the last change first."""
    rows = await connection.fetch(ROWS, site_id, ROWS_MAX)
    return {row["banner_id"]: ApprovalEvent(**dict(row)) for row in rows}


def name_event(before: ApprovalEvent | None, after: ApprovalEvent) -> str:
    """Name what happened: a banner that somebody made wait again is revoked, one that has changed waits."""
    was_approved = before is not None and before.state == APPROVED
    is_decided = after.decided_at is not None
    return REVOKED if after.state == PENDING and was_approved and is_decided else after.state


def find_changes(before: Approvals, after: Approvals) -> list[tuple[str, ApprovalEvent]]:
    """Return the events between two readings, oldest first."""
    changed = [one for one in after.values() if not _is_same(before.get(one.banner_id), one)]
    return [(name_event(before.get(one.banner_id), one), one) for one in reversed(changed)]


def _is_same(before: ApprovalEvent | None, after: ApprovalEvent) -> bool:
    """Another campaign of the banner, after one was deleted, changes nothing that was decided."""
    return before is not None and msgspec.structs.replace(before, campaign_id=after.campaign_id) == after


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
