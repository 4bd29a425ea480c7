"""Records that banners may name, declared; each kind has a table of its own."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from adloom.catalog.reference.model import (
    ReferenceExistsError,
    ReferenceId,
    ReferenceKind,
    ReferenceNotFoundError,
    ReferenceRecord,
)
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.resource import Resource

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
        not_found=ReferenceNotFoundError,
        identity_column="id",
        identity_type="uuid" if kind is ReferenceKind.SEO else "integer",
        search=("label",),
        before_delete=clear_banners,
        taken=lambda _record: ReferenceExistsError(f"There is a {kind} with this id already."),
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
