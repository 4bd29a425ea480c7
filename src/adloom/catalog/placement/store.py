"""SQL of placements."""

from collections.abc import Generator
from contextlib import contextmanager

import asyncpg

from adloom.catalog.changes import CatalogWrite, Noun
from adloom.catalog.owned_table import OwnedTable
from adloom.catalog.placement.model import (
    Layout,
    Placement,
    PlacementInUseError,
    PlacementNotFoundError,
    PlacementSlugTakenError,
)
from adloom.core.actor import Role
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "slug", "label", "sort_order", "is_active"})
# Campaigns that are over show nothing any more, so they hold no placement back.
HAS_ACTIVE_ASSIGNMENTS = """
    SELECT EXISTS (
        SELECT FROM banner_assignments AS assignment
          JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
          JOIN placements AS placement ON placement.id = assignment.placement_id
         WHERE placement.public_id = $1 AND assignment.is_active
           AND campaign.deleted_at IS NULL AND campaign.status NOT IN ('ended', 'cancelled')
    )
"""

placements = OwnedTable(
    Placement,
    table="placements",
    noun=Noun.PLACEMENT,
    owner=Role.PUBLISHER,
    not_found=PlacementNotFoundError,
)


def matching(*, is_active: bool | None, layout_type: Layout | None, search: str | None) -> Filters:
    """Filter a list of placements."""
    filters = Filters()
    filters.add_given("it.is_active = {}", is_active)
    filters.add_given("it.layout_type = {}", layout_type)
    filters.add_search(("it.slug", "it.label", "it.page_context"), search)
    return filters


async def insert(write: CatalogWrite, placement: Placement) -> None:
    """Add a placement."""
    with _slug_may_be_taken(placement):
        await placements.insert(write, placement)


async def update(write: CatalogWrite, placement: Placement) -> None:
    """Write a placement that was read with a lock before."""
    with _slug_may_be_taken(placement):
        await placements.update(write, placement)


async def delete(write: CatalogWrite, placement: Placement) -> None:
    """Remove a placement on which nothing is shown any more."""
    if await write.connection.fetchval(HAS_ACTIVE_ASSIGNMENTS, placement.id):
        raise PlacementInUseError(
            "Banners are still assigned to this placement. Remove or deactivate their assignments first."
        )
    await placements.delete(write, placement)


@contextmanager
def _slug_may_be_taken(placement: Placement) -> Generator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise PlacementSlugTakenError(
            f"The slug {placement.slug!r} is in use. Choose another one."
        ) from error
