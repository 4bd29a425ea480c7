"""When a row is removed, fields that name it become null, which counts as a change of their rows."""

from datetime import datetime
from uuid import UUID

import msgspec
from pydantic.alias_generators import to_camel

from adloom.resource.audit.entry import AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite, IndexedNoun


class ReferenceField(msgspec.Struct, frozen=True, kw_only=True):
    """A field by which things of a noun name a record; `key` is its value, from what is bound as $1."""

    noun: IndexedNoun
    table: str
    owner_field: str
    owners: str
    field: str
    key: str = "$1"

    @property
    def statement(self) -> str:
        """The SQL that empties the field; it moves `updated_at` on, as every change does."""
        return f"""
            UPDATE {self.table} AS it
               SET {self.field} = NULL, updated_at = greatest($2, it.updated_at + interval '1 microsecond')
             WHERE it.{self.field} = {self.key}
            RETURNING it.id, it.public_id,
                      (SELECT public_id FROM {self.owners} WHERE id = it.{self.owner_field}) AS owner_id
        """  # noqa: S608 - our own names


async def clear_references(
    write: CatalogWrite, naming: ReferenceField, record_id: int | UUID, *, now: datetime
) -> None:
    """Empty the field of all things that name a record; the caller has locked the record."""
    changes = {to_camel(naming.field): {"from": msgspec.to_builtins(record_id), "to": None}}
    for row in await write.connection.fetch(naming.statement, record_id, now):
        write.touch(naming.noun, row["id"])
        about = AuditSubject(naming.noun.value, str(row["public_id"]), row["owner_id"])
        write.entries.append(NewAuditEntry(about, "update", changes))
