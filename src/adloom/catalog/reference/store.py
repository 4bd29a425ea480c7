"""SQL of the records that banners may name; each kind has a table of its own."""

from datetime import datetime
from typing import Final

import asyncpg
import msgspec

from adloom.catalog.reference.model import (
    Reference,
    ReferenceExistsError,
    ReferenceId,
    ReferenceKind,
    ReferenceNotFoundError,
)
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record

SORTABLE = frozenset({"id", "label", "created_at"})
TABLES: Final = {
    ReferenceKind.BRAND: "brands",
    ReferenceKind.CATEGORY: "categories",
    ReferenceKind.PRODUCT: "products",
    ReferenceKind.SEO: "seo_records",
}
# The names of the tables and columns are our own words.
SOURCES: Final = {
    kind: RowSource(
        columns=f"'{kind}' AS kind, it.id, it.label, it.created_at", tables=f"{table} AS it", tiebreak="it.id"
    )
    for kind, table in TABLES.items()
}
INSERT: Final = {
    kind: f"INSERT INTO {table} (id, label, created_at) VALUES ($1, $2, $3)"  # noqa: S608
    for kind, table in TABLES.items()
}
LOCKED: Final = {
    kind: f"SELECT {source.columns} FROM {source.tables} WHERE it.id = $1 FOR UPDATE"  # noqa: S608
    for kind, source in SOURCES.items()
}
# Shared with other writers of banners: what a banner is about to name cannot be removed meanwhile.
IS_THERE: Final = {
    kind: f"SELECT true FROM {table} WHERE id = $1 FOR KEY SHARE"  # noqa: S608
    for kind, table in TABLES.items()
}
BANNERS: Final = {
    kind: ReferenceField(
        noun=IndexedNoun.BANNER,
        table="banners",
        owner_field="advertiser_id",
        owners="advertisers",
        field=f"{kind}_id",
    )
    for kind in TABLES
}
DELETE: Final = {kind: f"DELETE FROM {table} WHERE id = $1" for kind, table in TABLES.items()}  # noqa: S608


async def page(
    connection: Connection, kind: ReferenceKind, search: str | None, page: PageRequest
) -> Listed[Reference]:
    """Read a page of the records of a kind."""
    filters = Filters()
    filters.add_search(("it.label",), search)
    rows = await fetch_page(connection, SOURCES[kind], filters, page)
    items = [_reference(row) for row in rows.items]
    return Listed(items=items, total_count=rows.total_count)


async def insert(write: CatalogWrite, reference: Reference) -> None:
    """Add a record."""
    try:
        await write.connection.execute(
            INSERT[reference.kind], reference.id, reference.label, reference.created_at
        )
    except asyncpg.UniqueViolationError as error:
        raise ReferenceExistsError(f"There is a {reference.kind} with this id already.") from error
    write.record_creation(_about(reference), reference)


async def find_locked(write: CatalogWrite, kind: ReferenceKind, reference_id: ReferenceId) -> Reference:
    """Read a record to remove it."""
    row = await write.connection.fetchrow(LOCKED[kind], reference_id)
    if row is None:
        raise ReferenceNotFoundError(f"There is no {kind} with this id.")
    return _reference(row)


async def delete(write: CatalogWrite, reference: Reference, *, now: datetime) -> None:
    """Remove a record that was read with a lock before; banners that name it forget it."""
    await clear_references(write, BANNERS[reference.kind], reference.id, now=now)
    await write.connection.execute(DELETE[reference.kind], reference.id)
    write.record_deletion(_about(reference), reference)


async def is_there(write: CatalogWrite, kind: ReferenceKind, reference_id: ReferenceId) -> bool:
    """Tell whether there is a record, which then stays until the transaction ends."""
    return bool(await write.connection.fetchval(IS_THERE[kind], reference_id))


def _about(reference: Reference) -> AuditSubject:
    return AuditSubject(reference.kind.value, str(reference.id), None)


def _reference(row: Record) -> Reference:
    return msgspec.convert(dict(row), Reference)
