"""Records that banners may name, over HTTP: admins fill them, everybody may look one up."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from fastapi import Depends, Path, Query, status
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from adloom.catalog.reference.resource import (
    ID_MAX,
    RECORDS,
    ReferenceId,
    ReferenceKind,
    ReferenceRecord,
    parse_reference_id,
)
from adloom.core.errors import NotFoundError
from adloom.resource.access import EVERYTHING
from adloom.resource.api import AdminWrites, CurrentCatalog, make_catalog_router
from adloom.runtime.http.api.dependencies import CurrentCaller, Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Name, Natural, Text255
from adloom.runtime.listing import Filters, Listed


def _check_id(value: object, check: ValidatorFunctionWrapHandler) -> ReferenceId:
    # Pydantic would answer one error for each type of the union, under names of its own.
    try:
        return check(value)
    except ValidationError:
        raise ValueError(f"must be an integer from 0 to {ID_MAX}; for `seo` a UUID") from None


class ReferenceBody(Body):
    """A new record, with the id that it has in the shop."""

    id: Annotated[
        Natural | UUID,
        Field(description="An integer; for `seo` a UUID.", union_mode="left_to_right"),
        WrapValidator(_check_id),
    ]
    label: Name


class ReferenceAnswer(Answer):
    """A record."""

    kind: ReferenceKind
    id: int | UUID
    label: str
    created_at: datetime


class ReferenceQuery(ListQuery):
    """How a list of records is searched, sorted and paged."""

    SORTABLE: ClassVar = frozenset({"id", "label", "created_at"})

    sort: Text255 = "id"
    search: Text255 | None = None


async def _parse_kind(
    kind: Annotated[str, Path(json_schema_extra={"enum": list(ReferenceKind)})],
) -> ReferenceKind:
    # An unknown kind is an address that is not there, not a field to correct.
    if kind not in set(ReferenceKind):
        raise NotFoundError(
            f"There are references of the kinds {', '.join(ReferenceKind)}.", code="REFERENCE_NOT_FOUND"
        )
    return ReferenceKind(kind)


KindOfThePath = Annotated[ReferenceKind, Depends(_parse_kind)]

router = make_catalog_router("/admin/references/{kind}", tag="references")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_reference(
    kind: KindOfThePath, body: ReferenceBody, _scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> ReferenceAnswer:
    """Make a record known that banners may name."""
    key = parse_reference_id(kind, body.id, field="id")
    record = ReferenceRecord(id=key, label=body.label, created_at=now)
    async with catalog.write() as write:
        await RECORDS[kind].insert(write, record)
    return _answer(kind, record)


@router.get("")
async def list_references(
    kind: KindOfThePath,
    query: Annotated[ReferenceQuery, Query()],
    _caller: CurrentCaller,
    catalog: CurrentCatalog,
) -> Page[ReferenceAnswer]:
    """List the records of a kind."""
    filters = Filters()
    filters.add_search(("it.label",), query.search)
    async with catalog.read() as connection:
        listed = await RECORDS[kind].table.read_page(connection, EVERYTHING, filters, query.page_request)
    answers = [_answer(kind, record) for record in listed.items]
    return build_page(ReferenceAnswer, Listed(items=answers, total_count=listed.total_count), query)


@router.delete("/{reference_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_reference(
    kind: KindOfThePath, reference_id: Text255, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> None:
    """Remove a record; banners that name it have none of its kind then."""
    key = parse_reference_id(kind, reference_id, field="referenceId")
    async with catalog.write() as write:
        await RECORDS[kind].remove(write, scope, key, now=now)


def _answer(kind: ReferenceKind, record: ReferenceRecord) -> ReferenceAnswer:
    return ReferenceAnswer(kind=kind, **msgspec.structs.asdict(record))
