"""Links of campaigns to placements, and assignments of banners to links.

Both hang on a campaign, and their change is one of the placement. Their routes find the campaign first, in the
scope of the client. Placements and banners that they name are locked against removal until the write ends.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from adloom.catalog.assignment.model import WEIGHT_DEFAULT, Assignment, Link, LinkState
from adloom.catalog.banner import banners
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.placement import Placement, placements
from adloom.core.errors import BannerNotFoundError, ConflictError, PlacementNotFoundError
from adloom.resource.access import ADVERTISER, Scope
from adloom.resource.account_bounds import Bounds
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.spec import Need
from adloom.runtime.listing import Filters

# Orders below are the house's own; the default weight is the most that an account may give.
ACCOUNT_ORDER_MIN: Final = 100

# Before its links, as by whoever removes it.
SHARE_PLACEMENT: Final = "SELECT FROM placements WHERE public_id = $1 FOR SHARE"
PLACEMENT_USABLE: Final = """
    SELECT placement.is_open, owner.public_id AS publisher_id
      FROM placements AS placement LEFT JOIN publishers AS owner ON owner.id = placement.publisher_id
     WHERE placement.public_id = $1 AND (placement.is_active AND owner.deleted_at IS NULL OR NOT $2)
       FOR SHARE OF placement
"""
BANNER_USABLE: Final = """
    SELECT true FROM banners AS banner LEFT JOIN advertisers AS owner ON owner.id = banner.advertiser_id
     WHERE banner.public_id = $1 AND banner.deleted_at IS NULL
       AND ($2::uuid IS NULL OR owner.public_id = $2)
       FOR SHARE OF banner
"""


def begin_link(link: Link, named: Mapping[str, Any], scope: Scope) -> Link:
    placement: Placement = named["placement_id"]
    return link.begun(scope.account_id, is_open=placement.is_open, publisher_id=placement.publisher_id)


def _refuse_placement(field: str, named: object, _link: Link, scope: Scope) -> str | None:
    is_account = scope.account_id is not None
    if is_account and field == "placement_id" and isinstance(named, Placement) and not named.is_active:
        return "names no placement of this document or of the catalog"
    return None


links = Resource(
    struct=Link,
    name="link",
    table_name="campaign_placements",
    code="CAMPAIGN_PLACEMENT",
    missing="The campaign does not use this placement. Link it to the campaign first.",
    owner=ADVERTISER,
    identity=("campaign_id", "placement_id"),
    references={"campaign_id": campaigns, "placement_id": placements},
    parents=("campaign_id", "placement_id"),
    touches=(IndexedNoun.PLACEMENT, "placement_id"),
    docs={"body": "A placement for a campaign to use.", "answer": "A placement that a campaign uses."},
    decided=("state", "reason", "is_asked_for"),
    create_form={"placement_id": (UUID, ...)},
    taken=lambda _link: ConflictError(
        "The campaign already uses this placement.", code="CAMPAIGN_PLACEMENT_ALREADY_EXISTS"
    ),
    list_name="links",
    refuse_reference=_refuse_placement,
    begin=begin_link,
)
assignments = Resource(
    struct=Assignment,
    name="assignment",
    article="an",
    table_name="banner_assignments",
    code="BANNER_ASSIGNMENT",
    missing="The banner is not assigned to this placement.",
    owner=ADVERTISER,
    identity=("campaign_id", "placement_id", "banner_id"),
    references={"campaign_id": campaigns, "placement_id": placements, "banner_id": banners},
    parents=("campaign_id", "placement_id", "banner_id"),
    touches=(IndexedNoun.PLACEMENT, "placement_id"),
    docs={
        "body": "A banner for a campaign to show on a placement.",
        "answer": "This banner, in this campaign, on this placement.",
    },
    decided=("is_refused", "reason"),
    account_bounds={
        "display_order": Bounds(least=ACCOUNT_ORDER_MIN),
        "fallback_priority": Bounds(least=ACCOUNT_ORDER_MIN),
        "weight": Bounds(most=WEIGHT_DEFAULT),
    },
    create_form={"banner_id": (UUID, ...)},
    taken=lambda _assignment: ConflictError(
        "The banner is already assigned to this placement.", code="BANNER_ASSIGNMENT_ALREADY_EXISTS"
    ),
    list_name="assignments",
    needs=Need(
        list_name="links",
        field="placement_id",
        message="names no link: the campaign does not use this placement",
    ),
)


async def insert_link(write: CatalogWrite, scope: Scope, link: Link) -> Link:
    """Let a campaign use a placement; an account asks for one, which must be active. A copy of a refused link stays refused."""
    is_account = scope.account_id is not None
    placement = await write.connection.fetchrow(PLACEMENT_USABLE, link.placement_id, is_account)
    if placement is None:
        raise PlacementNotFoundError("There is no placement with this id that the campaign could use.")
    begun = link
    if link.state is not LinkState.REFUSED:
        is_open, publisher_id = placement["is_open"], placement["publisher_id"]
        begun = link.begun(scope.account_id, is_open=is_open, publisher_id=publisher_id)
    await links.insert(write, begun)
    return begun


async def lock_link(write: CatalogWrite, scope: Scope, campaign_id: UUID, placement_id: UUID) -> Link:
    """Read a link to change it or what hangs on it; the campaign is locked first, as every write does."""
    (await campaigns.table.lock(write, scope, campaign_id)).require_present()
    await write.connection.execute(SHARE_PLACEMENT, placement_id)
    return await links.table.lock(write, scope, campaign_id, placement_id)


async def delete_link(write: CatalogWrite, scope: Scope, link: Link) -> None:
    """Remove a link with its assignments, each of which has its entry in the audit trail."""
    link.check_removal(scope.account_id)
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", link.campaign_id)
    filters.add("placement_id_row.public_id = {}", link.placement_id)
    for assignment in await assignments.table.load_where(write.connection, filters):
        assignment.check_removal(scope.account_id)
        write.record_deletion(await assignments.table.load_subject(write.connection, assignment), assignment)
    await links.table.delete(write, link)


async def insert_assignment(write: CatalogWrite, scope: Scope, assignment: Assignment) -> None:
    """Assign a banner of the scope to a link that is locked."""
    if not await write.connection.fetchval(BANNER_USABLE, assignment.banner_id, scope.account_id):
        raise BannerNotFoundError("There is no banner with this id.")
    await assignments.insert(write, assignment)
