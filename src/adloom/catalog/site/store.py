"""SQL of sites."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

import asyncpg

from adloom.catalog.site.model import Site, SiteDomainTakenError, SiteNotFoundError
from adloom.core.actor import Role
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.owned_table import OwnedTable
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "domain", "name"})
PLACEMENTS = ReferenceField(
    noun=IndexedNoun.PLACEMENT,
    table="placements",
    owner_field="publisher_id",
    owners="publishers",
    field="site_id",
    key="(SELECT id FROM sites WHERE public_id = $1)",
)
PLACEMENT_KEYS = """
    SELECT it.id FROM placements AS it JOIN sites AS site ON site.id = it.site_id WHERE site.public_id = $1
"""

sites = OwnedTable(Site, table="sites", noun="site", owner=Role.PUBLISHER, not_found=SiteNotFoundError)


def matching(*, search: str | None, publisher_id: UUID | None = None) -> Filters:
    """Filter a list of sites."""
    filters = Filters()
    filters.add_given("owner.public_id = {}", publisher_id)
    filters.add_search(("it.domain", "it.name"), search)
    return filters


async def insert(write: CatalogWrite, site: Site) -> None:
    """Add a site."""
    with _domain_may_be_taken(site):
        await sites.insert(write, site)


async def update(write: CatalogWrite, before: Site, after: Site) -> Site:
    """Write a site that was read with a lock before."""
    with _domain_may_be_taken(after):
        updated = await sites.update(write, before, after)
    if before.domain != after.domain:  # Advertisers block sites by it.
        for row in await write.connection.fetch(PLACEMENT_KEYS, after.id):
            write.touch(IndexedNoun.PLACEMENT, row["id"])
    return updated


async def delete(write: CatalogWrite, site: Site, *, now: datetime) -> None:
    """Remove a site that was read with a lock before; its placements stay, without one."""
    await clear_references(write, PLACEMENTS, site.id, now=now)
    await sites.delete(write, site)


@contextmanager
def _domain_may_be_taken(site: Site) -> Generator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise SiteDomainTakenError(f"There is a site with the domain {site.domain} already.") from error
