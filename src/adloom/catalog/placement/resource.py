"""Placements, declared."""

from datetime import datetime

from adloom.catalog.placement.model import Placement, PlacementInUseError, PlacementSlugTakenError
from adloom.catalog.publisher.resource import publishers
from adloom.catalog.site.model import Site
from adloom.catalog.site.resource import sites
from adloom.core.errors import FieldProblem, PlacementNotFoundError, ValidationFailedError
from adloom.resource.access import Scope
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.table import PUBLISHER

# Shared with other writers of placements: the site cannot be removed between the look at it and the write.
SITE_OF_PUBLISHER = """
    SELECT true FROM sites AS site LEFT JOIN publishers AS owner ON owner.id = site.publisher_id
     WHERE site.public_id = $1 AND owner.public_id IS NOT DISTINCT FROM $2
       FOR KEY SHARE OF site
"""
# Campaigns that are over show nothing any more, so they hold no placement back.
HAS_ACTIVE_ASSIGNMENTS = """
    SELECT EXISTS (
        SELECT FROM banner_assignments AS assignment
          JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
          JOIN placements AS placement ON placement.id = assignment.placement_id
          LEFT JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
         WHERE placement.public_id = $1 AND assignment.is_active
           AND campaign.deleted_at IS NULL AND campaign.status NOT IN ('ended', 'cancelled')
           AND advertiser.deleted_at IS NULL
    )
"""
# What the database removes in silence with a placement: its links, and their assignments first.
GOES_WITH_A_PLACEMENT = """
    SELECT 'assignment' AS noun, concat_ws('/', campaign.public_id, placement.public_id, banner.public_id) AS id,
           owner.public_id AS owner_id
      FROM banner_assignments AS assignment
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      JOIN placements AS placement ON placement.id = assignment.placement_id
      JOIN banners AS banner ON banner.id = assignment.banner_id
     WHERE placement.public_id = $1
    UNION ALL
    SELECT 'link', concat_ws('/', campaign.public_id, placement.public_id), owner.public_id
      FROM campaign_placements AS link
      JOIN campaigns AS campaign ON campaign.id = link.campaign_id
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      JOIN placements AS placement ON placement.id = link.placement_id
     WHERE placement.public_id = $1
"""


async def _check_site(write: CatalogWrite, _scope: Scope, before: Placement | None, after: Placement) -> None:
    if after.site_id is None or (before is not None and after.site_id == before.site_id):
        return
    if not await write.connection.fetchval(SITE_OF_PUBLISHER, after.site_id, after.publisher_id):
        problem = FieldProblem("siteId", "names no site of the placement's publisher")
        raise ValidationFailedError("There is no such site of this publisher.", errors=[problem])


async def _check_unused(write: CatalogWrite, placement: Placement, _now: datetime) -> None:
    if await write.connection.fetchval(HAS_ACTIVE_ASSIGNMENTS, placement.id):
        raise PlacementInUseError(
            "Banners are still assigned to this placement. Remove or deactivate their assignments first."
        )
    for row in await write.connection.fetch(GOES_WITH_A_PLACEMENT, placement.id):
        subject = AuditSubject(row["noun"], row["id"], row["owner_id"])
        write.entries.append(NewAuditEntry(subject, "delete", {}))


def _refuse_site(field: str, named: Site | object, placement: Placement, _scope: Scope) -> str | None:
    if field == "site_id" and isinstance(named, Site) and named.publisher_id != placement.publisher_id:
        return "names no site of the placement's publisher"
    return None


placements = Resource(
    struct=Placement,
    name="placement",
    path="/admin/placements",
    tag="placements",
    table_name="placements",
    not_found=PlacementNotFoundError,
    owner=PUBLISHER,
    references={"publisher_id": publishers, "site_id": sites},
    touches=(IndexedNoun.PLACEMENT, "id"),
    docs={
        "body": "A new placement. Without a publisher it belongs to the house.",
        "delete": "Remove a placement on which nothing is shown any more.",
    },
    filters=("is_active", "layout_type", "delivery", "publisher_id", "site_id"),
    search=("slug", "label", "page_context"),
    sort=("slug", "label", "sort_order", "is_active", "delivery", "placement_type"),
    columns=("label", "slug", "layout_type", "delivery", "is_active", "created_at"),
    check=_check_site,
    before_delete=_check_unused,
    taken=lambda placement: PlacementSlugTakenError(
        f"The slug {placement.slug!r} is in use. Choose another one."
    ),
    list_name="placements",
    natural_key="slug",
    is_for_all=True,
    refuse_reference=_refuse_site,
)
