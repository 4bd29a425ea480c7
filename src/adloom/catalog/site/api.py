"""Sites over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status

from adloom.catalog.site import store
from adloom.catalog.site.model import Site
from adloom.core.ids import PublisherId, SiteId
from adloom.resource.access import choose_owner
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites, catalog_router
from adloom.resource.shapes import Domain, TimeZone
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Patch, Text255


class SiteFields(Body):
    """What a site can be told."""

    domain: Domain
    timezone: TimeZone = "UTC"


class SiteBody(SiteFields):
    """A new site; it is the house's own where no publisher is named, and called as its domain without a name."""

    name: Name | None = None
    publisher_id: UUID | None = None


class SitePatch(Patch, SiteFields):
    """Changes of a site."""

    name: Name


class SiteAnswer(Answer):
    """A site."""

    id: UUID
    publisher_id: UUID | None
    domain: str
    name: str
    timezone: str
    created_at: datetime
    updated_at: datetime
    # A site is removed for good; the field is there because every resource has it.
    deleted_at: None = None


class SiteQuery(ListQuery):
    """What a list of sites may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    publisher_id: UUID | None = None
    search: Text255 | None = None


router = catalog_router("/admin/sites", tag="sites")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_site(
    body: SiteBody, scope: PublisherWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> SiteAnswer:
    """Make a site."""
    owner = choose_owner(scope, body.publisher_id, field="publisherId")
    site = Site(
        id=SiteId(ids.new()),
        publisher_id=None if owner is None else PublisherId(owner),
        domain=body.domain,
        name=body.name or body.domain,
        timezone=body.timezone,
        created_at=now,
        updated_at=now,
    )
    async with catalog.write() as write:
        await store.insert(write, site)
    return SiteAnswer.model_validate(site)


@router.get("")
async def list_sites(
    query: Annotated[SiteQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[SiteAnswer]:
    """List sites."""
    async with catalog.read() as connection:
        filters = store.matching(search=query.search, publisher_id=query.publisher_id)
        listed = await store.sites.page(connection, scope, filters, query.page_request)
    return page_of(SiteAnswer, listed, query)


@router.get("/{site_id}")
async def read_site(site_id: UUID, scope: PublisherReads, catalog: CurrentCatalog) -> SiteAnswer:
    """Read a site."""
    async with catalog.read() as connection:
        return SiteAnswer.model_validate(await store.sites.find(connection, scope, site_id))


@router.patch("/{site_id}")
async def change_site(
    site_id: UUID, body: SitePatch, scope: PublisherWrites, catalog: CurrentCatalog, now: Now
) -> SiteAnswer:
    """Change a site, field by field."""
    async with catalog.write() as write:
        before = await store.sites.find_locked(write, scope, site_id)
        after = await store.update(write, before, body.apply_to(before, updated_at=now))
    return SiteAnswer.model_validate(after)


@router.delete("/{site_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_site(site_id: UUID, scope: PublisherWrites, catalog: CurrentCatalog, now: Now) -> None:
    """Remove a site; its placements stay, without a site."""
    async with catalog.write() as write:
        await store.delete(write, await store.sites.find_locked(write, scope, site_id), now=now)
