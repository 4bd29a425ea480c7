"""SQL of placements."""

from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

import asyncpg

from adloom.catalog.placement.model import (
    Delivery,
    Layout,
    Placement,
    PlacementInUseError,
    PlacementSlugTakenError,
)
from adloom.core.actor import Role
from adloom.core.errors import FieldProblem, PlacementNotFoundError, ValidationFailedError
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.owned_table import OwnedTable
from adloom.runtime.listing import Filters

SORTABLE = frozenset(
    {"created_at", "updated_at", "slug", "label", "sort_order", "is_active", "delivery", "placement_type"}
)
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

placements = OwnedTable(
    Placement,
    table="placements",
    noun=IndexedNoun.PLACEMENT,
    owner=Role.PUBLISHER,
    not_found=PlacementNotFoundError,
    references={"site_id": "sites"},
)


def matching(  # noqa: PLR0913 - an argument a filter, each by its name
    *,
    is_active: bool | None,
    layout_type: Layout | None,
    delivery: Delivery | None,
    search: str | None,
    publisher_id: UUID | None = None,
    site_id: UUID | None = None,
) -> Filters:
    """Filter a list of placements."""
    filters = Filters()
    filters.add_given("it.is_active = {}", is_active)
    filters.add_given("it.layout_type = {}", layout_type)
    filters.add_given("it.delivery = {}", delivery)
    filters.add_given("owner.public_id = {}", publisher_id)
    filters.add_given("it.site_id = (SELECT id FROM sites WHERE public_id = {})", site_id)
    filters.add_search(("it.slug", "it.label", "it.page_context"), search)
    return filters


async def insert(write: CatalogWrite, placement: Placement) -> None:
    """Add a placement."""
    await _check_site(write, placement)
    with _slug_may_be_taken(placement):
        await placements.insert(write, placement)


async def update(write: CatalogWrite, before: Placement, after: Placement) -> Placement:
    """Write a placement that was read with a lock before, and give it as it is now."""
    if after.site_id != before.site_id:
        await _check_site(write, after)
    with _slug_may_be_taken(after):
        return await placements.update(write, before, after)


async def delete(write: CatalogWrite, placement: Placement) -> None:
    """Remove a placement on which nothing is shown any more."""
    if await write.connection.fetchval(HAS_ACTIVE_ASSIGNMENTS, placement.id):
        raise PlacementInUseError(
            "Banners are still assigned to this placement. Remove or deactivate their assignments first."
        )
    for row in await write.connection.fetch(GOES_WITH_A_PLACEMENT, placement.id):
        write.entries.append(
            NewAuditEntry(AuditSubject(row["noun"], row["id"], row["owner_id"]), "delete", {})
        )
    await placements.delete(write, placement)


async def _check_site(write: CatalogWrite, placement: Placement) -> None:
    if placement.site_id is not None and not await write.connection.fetchval(
        SITE_OF_PUBLISHER, placement.site_id, placement.publisher_id
    ):
        problem = FieldProblem("siteId", "names no site of the placement's publisher")
        raise ValidationFailedError("There is no such site of this publisher.", errors=[problem])


@contextmanager
def _slug_may_be_taken(placement: Placement) -> Generator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise PlacementSlugTakenError(
            f"The slug {placement.slug!r} is in use. Choose another one."
        ) from error
