"""Records that banners may name, over HTTP: admins fill them, everybody may look one up."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Depends, Path, Query, status
from pydantic import Field

from adloom.catalog.reference import store
from adloom.catalog.reference.model import (
    Reference,
    ReferenceKind,
    ReferenceNotFoundError,
    id_of_kind,
)
from adloom.resource.api import AdminWrites, CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import CurrentActor, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Natural, Text255


class ReferenceBody(Body):
    """A new record, with the id that it has in the shop."""

    id: Annotated[
        Natural | UUID, Field(description="An integer; for `seo` a UUID.", union_mode="left_to_right")
    ]
    label: Name


class ReferenceAnswer(Answer):
    """A record."""

    kind: ReferenceKind
    id: int | UUID
    label: str
    created_at: datetime


class ReferenceQuery(ListQuery):
    """What a list of records may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    sort: Text255 = "id"
    search: Text255 | None = None


def _kind(kind: Annotated[str, Path(json_schema_extra={"enum": list(ReferenceKind)})]) -> ReferenceKind:
    # An unknown kind is an address that is not there, not a field to correct.
    if kind not in set(ReferenceKind):
        raise ReferenceNotFoundError(f"There are references of the kinds {', '.join(ReferenceKind)}.")
    return ReferenceKind(kind)


KindOfThePath = Annotated[ReferenceKind, Depends(_kind)]

router = catalog_router("/admin/references/{kind}", tag="references")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_reference(
    kind: KindOfThePath, body: ReferenceBody, _scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> ReferenceAnswer:
    """Make a record known that banners may name."""
    reference = Reference(
        kind=kind, id=id_of_kind(kind, body.id, field="id"), label=body.label, created_at=now
    )
    async with catalog.write() as write:
        await store.insert(write, reference)
    return ReferenceAnswer.model_validate(reference)


@router.get("")
async def list_references(
    kind: KindOfThePath,
    query: Annotated[ReferenceQuery, Query()],
    _actor: CurrentActor,
    catalog: CurrentCatalog,
) -> Page[ReferenceAnswer]:
    """List the records of a kind."""
    async with catalog.read() as connection:
        listed = await store.page(connection, kind, query.search, query.page_request)
    return page_of(ReferenceAnswer, listed, query)


@router.delete("/{reference_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_reference(
    kind: KindOfThePath, reference_id: Text255, _scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> None:
    """Remove a record; banners that name it have none of its kind then."""
    key = id_of_kind(kind, reference_id, field="referenceId")
    async with catalog.write() as write:
        await store.delete(write, await store.find_locked(write, kind, key), now=now)
