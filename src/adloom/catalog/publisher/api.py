"""Publishers over HTTP: admins manage them, and a publisher reads its own record."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status

from adloom.catalog.publisher import store
from adloom.catalog.publisher.model import Publisher
from adloom.core.ids import PublisherId
from adloom.resource.access import Scope
from adloom.resource.api import AdminWrites, CurrentCatalog, PublisherReads, catalog_router
from adloom.resource.changes import Catalog
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Patch, Text255


class PublisherBody(Body):
    """What a publisher can be told."""

    name: Name


class PublisherPatch(Patch, PublisherBody):
    """Changes of a publisher."""


class PublisherAnswer(Answer):
    """A publisher; its id is the account of its tokens."""

    id: UUID
    name: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class PublisherQuery(ListQuery):
    """What a list of publishers may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    include_deleted: bool = False
    search: Text255 | None = None


router = catalog_router("/admin/publishers", tag="publishers")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_publisher(
    body: PublisherBody, _scope: AdminWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> PublisherAnswer:
    """Make a publisher."""
    publisher = Publisher(
        **body.fields(), id=PublisherId(ids.new()), created_at=now, updated_at=now, deleted_at=None
    )
    async with catalog.write() as write:
        await store.publishers.insert(write, publisher)
    return PublisherAnswer.model_validate(publisher)


@router.get("")
async def list_publishers(
    query: Annotated[PublisherQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[PublisherAnswer]:
    """List publishers; one that asks sees itself."""
    filters = store.matching(search=query.search, includes_deleted=query.include_deleted)
    async with catalog.read() as connection:
        listed = await store.publishers.page(connection, scope, filters, query.page_request)
    return page_of(PublisherAnswer, listed, query)


@router.get("/{publisher_id}")
async def read_publisher(
    publisher_id: UUID, scope: PublisherReads, catalog: CurrentCatalog
) -> PublisherAnswer:
    """Read a publisher, also one that is deleted."""
    async with catalog.read() as connection:
        return PublisherAnswer.model_validate(await store.publishers.find(connection, scope, publisher_id))


@router.patch("/{publisher_id}")
async def change_publisher(
    publisher_id: UUID, body: PublisherPatch, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> PublisherAnswer:
    """Change a publisher, field by field."""
    return await _changed(
        catalog, scope, publisher_id, lambda before: body.apply_to(before.present(), updated_at=now)
    )


@router.delete("/{publisher_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_publisher(publisher_id: UUID, scope: AdminWrites, catalog: CurrentCatalog, now: Now) -> None:
    """Delete a publisher: its tokens are refused and its placements closed, until it is restored."""
    await _changed(catalog, scope, publisher_id, lambda before: before.deleted(now))


@router.post("/{publisher_id}/restore")
async def restore_publisher(
    publisher_id: UUID, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> PublisherAnswer:
    """Bring a deleted publisher back, with all that it owns."""
    return await _changed(catalog, scope, publisher_id, lambda before: before.restored(now))


async def _changed(
    catalog: Catalog, scope: Scope, publisher_id: UUID, rule: Callable[[Publisher], Publisher]
) -> PublisherAnswer:
    async with catalog.write() as write:
        before = await store.publishers.find_locked(write, scope, publisher_id)
        after = await store.update(write, before, rule(before))
    return PublisherAnswer.model_validate(after)
