"""SQL of links and assignments.

Both hang on a campaign, so their callers find the campaign first, in the scope of who asks;
banners that are assigned are looked up in that scope too. A change counts as one of the placement, and
what it is about belongs to whom the campaign belongs to.
"""

from uuid import UUID

import asyncpg
import msgspec

from adloom.catalog.assignment.model import (
    Assignment,
    AssignmentExistsError,
    AssignmentNotFoundError,
    Link,
    LinkExistsError,
    LinkNotFoundError,
)
from adloom.catalog.campaign.model import Campaign
from adloom.core.errors import BannerNotFoundError, PlacementNotFoundError
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.etag import moved_forward
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection

LINK_SORTABLE = frozenset({"created_at", "updated_at", "is_active"})
ASSIGNMENT_SORTABLE = frozenset({"created_at", "updated_at", "display_order", "weight", "is_active"})

# Shared locks on the placement: it cannot be removed between the look at it and the write.
PLACEMENT_KEY = """
    SELECT placement.id
      FROM placements AS placement LEFT JOIN publishers AS owner ON owner.id = placement.publisher_id
     WHERE placement.public_id = $1 AND (placement.is_active AND owner.deleted_at IS NULL OR NOT $2)
       FOR SHARE OF placement
"""
BANNER_KEY = """
    SELECT banner.id FROM banners AS banner LEFT JOIN advertisers AS owner ON owner.id = banner.advertiser_id
     WHERE banner.public_id = $1 AND banner.deleted_at IS NULL
       AND ($2::uuid IS NULL OR owner.public_id = $2)
       FOR SHARE OF banner
"""
LINKS = RowSource(
    columns="""
        campaign.public_id AS campaign_id, placement.public_id AS placement_id, it.is_active,
        it.created_at, it.updated_at
    """,
    tables="""
        campaign_placements AS it
        JOIN campaigns AS campaign ON campaign.id = it.campaign_id
        JOIN placements AS placement ON placement.id = it.placement_id
    """,
    tiebreak="it.placement_id",
)
HAS_LINK = f"""
    SELECT true FROM {LINKS.tables} WHERE campaign.public_id = $1 AND placement.public_id = $2
"""  # noqa: S608 - our own names
INSERT_LINK = """
    INSERT INTO campaign_placements (campaign_id, placement_id, is_active, created_at, updated_at)
    SELECT id, $2, $3, $4, $5 FROM campaigns WHERE public_id = $1
"""
# Locked, with its placement shared: whoever holds this may add, change or remove what hangs on it.
LINK_LOCKED = f"""
    SELECT {LINKS.columns}, it.placement_id AS placement_key FROM {LINKS.tables}
     WHERE campaign.public_id = $1 AND placement.public_id = $2
       FOR UPDATE OF it FOR SHARE OF placement
"""  # noqa: S608 - our own names
UPDATE_LINK = """
    UPDATE campaign_placements AS it SET is_active = $3, updated_at = $4
      FROM campaigns AS campaign
     WHERE campaign.id = it.campaign_id AND campaign.public_id = $1 AND it.placement_id = $2
"""
DELETE_LINK = """
    DELETE FROM campaign_placements AS it USING campaigns AS campaign
     WHERE campaign.id = it.campaign_id AND campaign.public_id = $1 AND it.placement_id = $2
"""

ASSIGNMENT_FIELDS = (
    "display_order",
    "weight",
    "is_fallback",
    "fallback_priority",
    "is_active",
    "override_cta_label",
    "override_cta_url",
    "override_headline",
    "override_subheadline",
    "transition_duration_ms",
    "updated_at",
)
ASSIGNMENTS = RowSource(
    columns=f"""
        campaign.public_id AS campaign_id, placement.public_id AS placement_id,
        banner.public_id AS banner_id, it.created_at, {", ".join(f"it.{name}" for name in ASSIGNMENT_FIELDS)}
    """,
    tables="""
        banner_assignments AS it
        JOIN campaigns AS campaign ON campaign.id = it.campaign_id
        JOIN placements AS placement ON placement.id = it.placement_id
        JOIN banners AS banner ON banner.id = it.banner_id
    """,
    tiebreak="it.banner_id",
)
INSERT_ASSIGNMENT = f"""
    INSERT INTO banner_assignments
           (campaign_id, placement_id, banner_id, created_at, {", ".join(ASSIGNMENT_FIELDS)})
    SELECT id, $2, $3, $4, {", ".join(f"${place}" for place in range(5, len(ASSIGNMENT_FIELDS) + 5))}
      FROM campaigns WHERE public_id = $1
"""  # noqa: S608 - our own names
ASSIGNMENT_LOCKED = f"""
    SELECT {ASSIGNMENTS.columns} FROM {ASSIGNMENTS.tables}
     WHERE campaign.public_id = $1 AND it.placement_id = $2 AND banner.public_id = $3
       FOR UPDATE OF it
"""  # noqa: S608 - our own names
ASSIGNMENTS_OF_LINK_LOCKED = f"""
    SELECT {ASSIGNMENTS.columns} FROM {ASSIGNMENTS.tables}
     WHERE campaign.public_id = $1 AND it.placement_id = $2 ORDER BY it.banner_id
       FOR UPDATE OF it
"""  # noqa: S608 - our own names
UPDATE_ASSIGNMENT = f"""
    UPDATE banner_assignments AS it
       SET {", ".join(f"{name} = ${place}" for place, name in enumerate(ASSIGNMENT_FIELDS, 4))}
      FROM campaigns AS campaign, banners AS banner
     WHERE campaign.id = it.campaign_id AND banner.id = it.banner_id
       AND campaign.public_id = $1 AND it.placement_id = $2 AND banner.public_id = $3
"""  # noqa: S608 - our own names
DELETE_ASSIGNMENT = """
    DELETE FROM banner_assignments AS it USING campaigns AS campaign, banners AS banner
     WHERE campaign.id = it.campaign_id AND banner.id = it.banner_id
       AND campaign.public_id = $1 AND it.placement_id = $2 AND banner.public_id = $3
"""


class LockedLink(msgspec.Struct, frozen=True):
    """A link that nobody else changes until the transaction ends."""

    link: Link
    placement_key: int
    owner_id: AdvertiserId | None


async def insert_link(write: CatalogWrite, scope: Scope, campaign: Campaign, link: Link) -> None:
    """Let a campaign use a placement; an account may use any that is active."""
    is_an_account = scope.account_id is not None
    key: int | None = await write.connection.fetchval(PLACEMENT_KEY, link.placement_id, is_an_account)
    if key is None:
        raise PlacementNotFoundError("There is no placement with this id that the campaign could use.")
    try:
        await write.connection.execute(
            INSERT_LINK, link.campaign_id, key, link.is_active, link.created_at, link.updated_at
        )
    except asyncpg.UniqueViolationError as error:
        raise LinkExistsError("The campaign already uses this placement.") from error
    write.touch(IndexedNoun.PLACEMENT, key)
    write.record_creation(link_named(link, campaign.advertiser_id), link)


async def find_link_locked(write: CatalogWrite, campaign: Campaign, placement_id: UUID) -> LockedLink:
    """Read a link to change it or what hangs on it."""
    row = await write.connection.fetchrow(LINK_LOCKED, campaign.id, placement_id)
    if row is None:
        raise LinkNotFoundError("The campaign does not use this placement. Link it to the campaign first.")
    fields = dict(row)
    placement_key: int = fields.pop("placement_key")
    return LockedLink(msgspec.convert(fields, Link), placement_key, campaign.advertiser_id)


async def update_link(write: CatalogWrite, locked: LockedLink, link: Link) -> Link:
    """Write a changed link, and give it as it is now."""
    if not find_changed_fields(locked.link, link):
        return locked.link
    link = moved_forward(locked.link, link)
    await write.connection.execute(
        UPDATE_LINK, link.campaign_id, locked.placement_key, link.is_active, link.updated_at
    )
    write.touch(IndexedNoun.PLACEMENT, locked.placement_key)
    write.record_update(link_named(link, locked.owner_id), locked.link, link)
    return link


async def delete_link(write: CatalogWrite, locked: LockedLink) -> None:
    """Remove a link with its assignments."""
    link = locked.link
    rows = await write.connection.fetch(ASSIGNMENTS_OF_LINK_LOCKED, link.campaign_id, locked.placement_key)
    for assignment in (msgspec.convert(dict(row), Assignment) for row in rows):
        write.record_deletion(assignment_named(assignment, locked.owner_id), assignment)
    await write.connection.execute(DELETE_LINK, link.campaign_id, locked.placement_key)
    write.touch(IndexedNoun.PLACEMENT, locked.placement_key)
    write.record_deletion(link_named(link, locked.owner_id), link)


async def links_of(connection: Connection, campaign: Campaign, page: PageRequest) -> Listed[Link]:
    """Read a page of a campaign's links."""
    filters = Filters()
    filters.add("campaign.public_id = {}", campaign.id)
    rows = await fetch_page(connection, LINKS, filters, page)
    return Listed(
        items=[msgspec.convert(dict(row), Link) for row in rows.items], total_count=rows.total_count
    )


async def has_link(connection: Connection, campaign: Campaign, placement_id: UUID) -> bool:
    """Tell whether a campaign uses a placement."""
    return bool(await connection.fetchval(HAS_LINK, campaign.id, placement_id))


async def insert_assignment(
    write: CatalogWrite, scope: Scope, locked: LockedLink, assignment: Assignment
) -> None:
    """Assign a banner of the scope to a link."""
    banner_key: int | None = await write.connection.fetchval(
        BANNER_KEY, assignment.banner_id, scope.account_id
    )
    if banner_key is None:
        raise BannerNotFoundError("There is no banner with this id.")
    try:
        await write.connection.execute(
            INSERT_ASSIGNMENT,
            assignment.campaign_id,
            locked.placement_key,
            banner_key,
            assignment.created_at,
            *_values(assignment),
        )
    except asyncpg.UniqueViolationError as error:
        raise AssignmentExistsError("The banner is already assigned to this placement.") from error
    write.touch(IndexedNoun.PLACEMENT, locked.placement_key)
    write.record_creation(assignment_named(assignment, locked.owner_id), assignment)


async def find_assignment_locked(write: CatalogWrite, locked: LockedLink, banner_id: UUID) -> Assignment:
    """Read an assignment to change it, in the state that the client knows."""
    row = await write.connection.fetchrow(
        ASSIGNMENT_LOCKED, locked.link.campaign_id, locked.placement_key, banner_id
    )
    if row is None:
        raise AssignmentNotFoundError("The banner is not assigned to this placement.")
    assignment = msgspec.convert(dict(row), Assignment)
    write.precondition.check(assignment)
    return assignment


async def update_assignment(
    write: CatalogWrite, locked: LockedLink, before: Assignment, after: Assignment
) -> Assignment:
    """Write a changed assignment, and give it as it is now."""
    if not find_changed_fields(before, after):
        return before
    after = moved_forward(before, after)
    await write.connection.execute(
        UPDATE_ASSIGNMENT, after.campaign_id, locked.placement_key, after.banner_id, *_values(after)
    )
    write.touch(IndexedNoun.PLACEMENT, locked.placement_key)
    write.record_update(assignment_named(after, locked.owner_id), before, after)
    return after


async def delete_assignment(write: CatalogWrite, locked: LockedLink, assignment: Assignment) -> None:
    """Remove an assignment."""
    await write.connection.execute(
        DELETE_ASSIGNMENT, assignment.campaign_id, locked.placement_key, assignment.banner_id
    )
    write.touch(IndexedNoun.PLACEMENT, locked.placement_key)
    write.record_deletion(assignment_named(assignment, locked.owner_id), assignment)


async def assignments_of(
    connection: Connection, campaign: Campaign, placement_id: UUID, page: PageRequest
) -> Listed[Assignment]:
    """Read a page of the assignments of a link."""
    filters = Filters()
    filters.add("campaign.public_id = {}", campaign.id)
    filters.add("placement.public_id = {}", placement_id)
    rows = await fetch_page(connection, ASSIGNMENTS, filters, page)
    return Listed(
        items=[msgspec.convert(dict(row), Assignment) for row in rows.items], total_count=rows.total_count
    )


def link_named(link: Link, owner_id: AdvertiserId | None) -> AuditSubject:
    """Name a link in the trail."""
    return AuditSubject("link", f"{link.campaign_id}/{link.placement_id}", owner_id)


def assignment_named(assignment: Assignment, owner_id: AdvertiserId | None) -> AuditSubject:
    """Name an assignment in the trail."""
    noun_id = f"{assignment.campaign_id}/{assignment.placement_id}/{assignment.banner_id}"
    return AuditSubject("assignment", noun_id, owner_id)


def _values(assignment: Assignment) -> list[object]:
    return [getattr(assignment, name) for name in ASSIGNMENT_FIELDS]
