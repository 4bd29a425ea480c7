"""What publishers decide about banners, as events of their sites: banners that wait, and decisions.

The rows have no version, as two processes write them. A checksum over all of a site's rows says that one has
changed; then they are read, and compared with what was told last.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
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


class ApprovalEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A banner that wants to be shown on the site, and what holds for it now."""

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
