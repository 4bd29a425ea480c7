"""Sites: the domains on which placements are."""

from collections.abc import Collection
from datetime import datetime

import msgspec

from adloom.catalog.publisher import publishers
from adloom.core.errors import ConflictError
from adloom.core.ids import PublisherId, SiteId
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.resource import Resource
from adloom.resource.shapes import Domain, TimeZone
from adloom.resource.table import PUBLISHER
from adloom.runtime.http.api.shapes import Name
from adloom.targeting.values import normalize_domain


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with pages."""

    id: SiteId
    publisher_id: PublisherId | None
    domain: Domain
    name: Name
    timezone: TimeZone = "UTC"
    created_at: datetime
    updated_at: datetime


def name_site(site: Site, _given: Collection[str], _now: datetime) -> Site:
    """Call a site that was given no name by its domain."""
    return site if site.name else msgspec.structs.replace(site, name=site.domain)


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


async def _touch_placements(write: CatalogWrite, before: Site, after: Site) -> None:
    if before.domain != after.domain:  # Advertisers block sites by their domains.
        await write.touch_all(IndexedNoun.PLACEMENT, PLACEMENT_KEYS, after.id)


async def _clear_placements(write: CatalogWrite, site: Site, now: datetime) -> None:
    await clear_references(write, PLACEMENTS, site.id, now=now)


sites = Resource(
    struct=Site,
    name="site",
    path="/admin/sites",
    tag="sites",
    table_name="sites",
    owner=PUBLISHER,
    references={"publisher_id": publishers},
    docs={
        "body": "A new site. Without a publisher it belongs to the house; without a name it is called by its domain.",
        "delete": "Remove a site; its placements stay, without a site.",
    },
    create_form={"name": (Name | None, None)},
    filters=("publisher_id",),
    search=("domain", "name"),
    sort=("domain", "name"),
    finish=name_site,
    after_update=_touch_placements,
    before_delete=_clear_placements,
    taken=lambda site: ConflictError(
        f"There is a site with the domain {site.domain} already.", code="SITE_DOMAIN_EXISTS"
    ),
    list_name="sites",
    natural_key="domain",
    normalize=lambda text: normalize_domain(text) or text,
)
