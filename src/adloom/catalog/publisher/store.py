"""SQL of publishers."""

from adloom.catalog.publisher.model import Publisher, PublisherNotFoundError
from adloom.core.actor import Role
from adloom.resource.account_table import AccountTable
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "name"})
PLACEMENT_KEYS = """
    SELECT it.id FROM placements AS it JOIN publishers AS owner ON owner.id = it.publisher_id
     WHERE owner.public_id = $1
"""

publishers = AccountTable(Publisher, role=Role.PUBLISHER, not_found=PublisherNotFoundError)


def matching(*, search: str | None, includes_deleted: bool) -> Filters:
    """Filter a list of publishers."""
    filters = Filters()
    filters.add_search(("it.name",), search)
    if not includes_deleted:
        filters.add("it.deleted_at IS NULL")
    return filters


async def update(write: CatalogWrite, before: Publisher, after: Publisher) -> Publisher:
    """Write a publisher; its placements are closed with its deletion, and open when it is restored."""
    updated = await publishers.update(write, before, after)
    if before.deleted_at != after.deleted_at:
        for row in await write.connection.fetch(PLACEMENT_KEYS, after.id):
            write.touch(IndexedNoun.PLACEMENT, row["id"])
    return updated
