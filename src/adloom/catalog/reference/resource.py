"""Records that banners may name; each kind has a table of its own."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.errors import ConflictError, make_field_error
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.resource import Resource
from adloom.runtime.http.api.shapes import Name

ReferenceId = int | UUID

ID_MAX: Final = 2**31 - 1


class ReferenceKind(StrEnum):
    """What a record is of."""

    BRAND = "brand"
    CATEGORY = "category"
    PRODUCT = "product"
    SEO = "seo"


class ReferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the shop: the id that it has there, and what people call it."""

    id: Any
    label: Name
    created_at: datetime


def parse_reference_id(kind: ReferenceKind, given: ReferenceId | str, *, field: str) -> ReferenceId:
    """Return an id as records of its kind have it: a UUID of SEO records, an integer of others."""
    try:
        if kind is ReferenceKind.SEO:
            return given if isinstance(given, UUID) else UUID(str(given))
        if isinstance(given, str) and given.isascii() and given.isdecimal():
            given = int(given)
        if isinstance(given, int) and given <= ID_MAX:
            return given
    except ValueError:
        pass
    wanted = "a UUID" if kind is ReferenceKind.SEO else f"an integer from 0 to {ID_MAX}"
    raise make_field_error(field, f"must be {wanted}", f"The id of a {kind} is {wanted}.")


TABLES: Final = {
    ReferenceKind.BRAND: ("brands", "brands"),
    ReferenceKind.CATEGORY: ("categories", "categories"),
    ReferenceKind.PRODUCT: ("products", "products"),
    ReferenceKind.SEO: ("seo_records", "seoRecords"),
}
# Shared with other writers of banners: what a banner is about to name cannot be removed meanwhile.
IS_THERE: Final = {
    kind: f"SELECT true FROM {table} WHERE id = $1 FOR KEY SHARE"  # noqa: S608 - our own names
    for kind, (table, _) in TABLES.items()
}


def _declare(kind: ReferenceKind, table: str, list_name: str) -> Resource[ReferenceRecord]:
    field = ReferenceField(
        noun=IndexedNoun.BANNER,
        table="banners",
        owner_field="advertiser_id",
        owners="advertisers",
        field=f"{kind}_id",
    )

    async def clear_banners(write: CatalogWrite, record: ReferenceRecord, now: datetime) -> None:
        await clear_references(write, field, record.id, now=now)

    return Resource(
        struct=ReferenceRecord,
        name=kind.value,
        table_name=table,
        code="REFERENCE",
        identity_column="id",
        identity_type="uuid" if kind is ReferenceKind.SEO else "integer",
        search=("label",),
        before_delete=clear_banners,
        taken=lambda _record: ConflictError(
            f"There is a {kind} with this id already.", code="REFERENCE_EXISTS"
        ),
        list_name=list_name,
        item_name="seoRecord" if kind is ReferenceKind.SEO else kind.value,
        is_for_all=True,
    )


RECORDS: Final[Mapping[ReferenceKind, Resource[ReferenceRecord]]] = {
    kind: _declare(kind, table, list_name) for kind, (table, list_name) in TABLES.items()
}


async def is_there(write: CatalogWrite, kind: ReferenceKind, reference_id: ReferenceId) -> bool:
    """Tell whether there is a record, which then stays until the transaction ends."""
    return bool(await write.connection.fetchval(IS_THERE[kind], reference_id))
