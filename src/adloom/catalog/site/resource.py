"""Sites as a noun: their routes, and what else a change of one touches."""

from datetime import datetime
from typing import Final

from adloom.catalog.publisher import publishers
from adloom.catalog.site.model import Site
from adloom.core.errors import ConflictError, make_taken_error
from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.resource import Resource
from adloom.resource.table import PUBLISHER
from adloom.runtime.http.api.shapes import Name
from adloom.targeting.values import normalize_domain

PLACEMENTS = ReferenceField(
    noun=IndexedNoun.PLACEMENT,
    table="placements",
    owner_field="publisher_id",
    owners="publishers",
    field="site_id",
    key="(SELECT id FROM sites WHERE public_id = $1)",
)
HAS_SLOTS: Final = """
    SELECT EXISTS (
        SELECT FROM placements AS it JOIN sites AS site ON site.id = it.site_id
         WHERE site.public_id = $1 AND it.delivery = 'contextual'
    )
"""
PLACEMENT_KEYS = """
    SELECT it.id FROM placements AS it JOIN sites AS site ON site.id = it.site_id WHERE site.public_id = $1
"""


IS_VERIFIED_ELSEWHERE: Final = """
    SELECT EXISTS (SELECT FROM sites WHERE domain = $1 AND public_id <> $2 AND verified_at IS NOT NULL)
"""


def make_domain_taken_error(site: Site) -> ConflictError:
    detail = f"There is a site with the domain {site.domain} already."
    return make_taken_error("domain", detail, code="SITE_DOMAIN_EXISTS")


async def _check_domain(write: CatalogWrite, _scope: Scope, before: Site | None, after: Site) -> None:
    """Refuse the domain of a verified site. One that somebody only claims is no obstacle: who proves it has it."""
    is_new = before is None or before.domain != after.domain
    if is_new and await write.connection.fetchval(IS_VERIFIED_ELSEWHERE, after.domain, after.id):
        raise make_domain_taken_error(after)


async def _touch_placements(write: CatalogWrite, before: Site, after: Site) -> None:
    # Advertisers block sites by their domains, and nothing is shown on one that warms up.
    if (before.domain, before.pacing.warmup) != (after.domain, after.pacing.warmup):
        await write.touch_all(IndexedNoun.PLACEMENT, PLACEMENT_KEYS, after.id)


async def _let_go_of_placements(write: CatalogWrite, site: Site, now: datetime) -> None:
    if await write.connection.fetchval(HAS_SLOTS, site.id):
        raise ConflictError(
            "Contextual placements are on this site. Remove them, or move them to another site, first.",
            code="SITE_HAS_SLOTS",
        )
    await clear_references(write, PLACEMENTS, site.id, now=now)


sites = Resource(
    struct=Site,
    name="site",
    path="/admin/sites",
    tag="sites",
    table_name="sites",
    title="name",
    owner=PUBLISHER,
    references={"publisher_id": publishers},
    docs={
        "body": "A new site. Without a publisher it belongs to the house; without a name it is called by its domain.",
        "change": "Change a site, field by field; `pacing` as a whole. Another domain is not verified.",
        "delete": "Remove a site without contextual placements; its other placements stay, without a site.",
    },
    create_form={"name": (Name | None, None)},
    filters=("publisher_id",),
    search=("domain", "name"),
    sort=("domain", "name"),
    touches=(IndexedNoun.SITE, "id"),
    set_by_server=frozenset({"verified_at", "verified_host"}),
    finish=lambda site, _given, _now: site.completed(),
    after_update=_touch_placements,
    before_delete=_let_go_of_placements,
    check=_check_domain,
    taken=make_domain_taken_error,
    list_name="sites",
    natural_key="domain",
    is_in_the_way=lambda other, site: (
        other.publisher_id == site.publisher_id or other.verified_at is not None
    ),
    normalize=lambda text: normalize_domain(text) or text,
)
