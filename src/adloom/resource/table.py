"""The table of a noun, row ↔ struct: one engine for the routes, for imports and for exports.

A struct's fields are columns. `id`, the owner and references are public ids outside and integer keys inside.
Statements are built once from our own names, never from a client's words. Rows are written as one JSON text;
the types of its columns are read from the database, so that no list here can be wrong.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from adloom.core.errors import NotFoundError
from adloom.resource.access import Owner, Scope
from adloom.resource.accounts import ACCOUNT_TABLES, is_open, make_unknown_account_error
from adloom.resource.audit.difference import find_changed_fields, list_virtual_fields
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.etag import move_forward
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record

T = TypeVar("T", bound=msgspec.Struct)
Identity = tuple[Any, ...]

BATCH_MAX: Final = 2_000  # Rows in one statement: what is sent and awaited at a time.
COLUMN_TYPES: Final = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
     WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
"""
FOR_UPDATE: Final = "FOR UPDATE OF it"
# Against other writers, but not against the counts of the event log, which only name the row.
FOR_IMPORT: Final = "FOR NO KEY UPDATE OF it"


class ResourceTable(msgspec.Struct, Generic[T], frozen=True, kw_only=True, dict=True, eq=False):
    """Where the rows of a noun are.

    `identity` are the fields that name a row. `references` are fields that name rows of other tables. `parents`
    are the references that a row cannot be without: they are joined, and where the struct has no owner of its
    own, the first parent's owner is the row's. `touches` is the column with the key of what the index must read
    again after a write, and its noun. With `hides_deleted` a deleted row is not found at all.
    """

    struct: type[T]
    name: str
    noun: str
    code: str = ""
    missing: str = ""
    owner: Owner | None = None
    identity: tuple[str, ...] = ("id",)
    identity_column: str = "public_id"
    identity_type: str = "uuid"
    references: Mapping[str, "ResourceTable[Any]"] = {}
    parents: tuple[str, ...] = ()
    touches: tuple[IndexedNoun, str] | None = None
    hides_deleted: bool = False

    @property
    def words(self) -> str:
        return self.noun.replace("_", " ")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields that are stored, in the struct's order."""
        virtual = list_virtual_fields(self.struct)
        return tuple(field for field in self.struct.__struct_fields__ if field not in virtual)

    @cached_property
    def has_own_owner(self) -> bool:
        return self.owner is not None and self.owner.field in self.fields

    @cached_property
    def foreign(self) -> Mapping[str, tuple[str, str]]:
        """Fields that are keys of other tables: the table, and what a query calls its row."""
        found = {
            field: (other.name, f"{field}_row")
            for field, other in self.references.items()
            if other.identity_column == "public_id"
        }
        if self.owner is not None and self.has_own_owner:
            found[self.owner.field] = (ACCOUNT_TABLES[self.owner.role], "owner")
        return found

    @cached_property
    def owner_row(self) -> str | None:
        """What a query calls the row of the owner."""
        if self.owner is None:
            return None
        if self.owner.is_itself:
            return "it"
        return "owner" if self.has_own_owner else f"{self.parents[0]}_owner"

    @cached_property
    def source(self) -> RowSource:
        """What a SELECT reads: `it` is the table."""
        joins = [
            f"{'JOIN' if field in self.parents else 'LEFT JOIN'} {table} AS {row} ON {row}.id = it.{field}"
            for field, (table, row) in self.foreign.items()
        ]
        for field, owner in self._parent_owners:
            joins.append(
                f"LEFT JOIN {ACCOUNT_TABLES[owner.role]} AS {field}_owner"
                f" ON {field}_owner.id = {field}_row.{owner.field}"
            )
        virtual = list_virtual_fields(self.struct)
        columns = [f"{self.build_outside_sql(field)} AS {_quote(field)}" for field in self.fields]
        columns += [f"{expression} AS {field}" for field, expression in virtual.items()]
        last = "it.id" if self.identity == ("id",) else f"it.{self.identity[-1]}"
        return RowSource(
            columns=", ".join(columns), tables=" ".join([f"{self.name} AS it", *joins]), tiebreak=last
        )

    @cached_property
    def live(self) -> str:
        """The condition under which a row counts: neither it is deleted, nor its owner, nor what it hangs on."""
        rows = ["it"] if "deleted_at" in self.fields else []
        rows += ["owner"] if self.has_own_owner else []
        rows += [f"{field}_row" for field in self.parents if "deleted_at" in self.references[field].fields]
        rows += [f"{field}_owner" for field, _ in self._parent_owners]
        return " AND ".join(f"{row}.deleted_at IS NULL" for row in rows) or "true"

    @property
    def _parent_owners(self) -> list[tuple[str, Owner]]:
        owners = [(field, self.references[field].owner) for field in self.parents]
        return [(field, owner) for field, owner in owners if owner is not None]

    def find_column(self, field: str) -> str:
        return self.identity_column if field == "id" else field

    def build_outside_sql(self, field: str) -> str:
        """Return the SQL of a field's value as clients know it."""
        return (
            f"{self.foreign[field][1]}.public_id"
            if field in self.foreign
            else f"it.{_quote(self.find_column(field))}"
        )

    def identify(self, thing: T) -> Identity:
        return tuple(getattr(thing, field) for field in self.identity)

    async def find(self, connection: Connection, scope: Scope, *identity: UUID | int, lock: str = "") -> T:
        """Read a row; one of another account is not there."""
        filters = Filters()
        for field, value in zip(self.identity, identity, strict=True):
            filters.add(f"{self.build_outside_sql(field)} = {{}}", value)
        self._add_scope(filters, scope)
        statement = f"SELECT {self.source.columns} FROM {self.source.tables} WHERE {filters.sql} {lock}"  # noqa: S608 - our own names
        row = await connection.fetchrow(statement, *filters.values)
        if row is None:
            sentence = self.missing or f"There is no {self.words} with this id."
            raise NotFoundError(sentence, code=f"{self.code or self.noun.upper()}_NOT_FOUND")
        return self._convert(row)

    async def find_locked(self, write: CatalogWrite, scope: Scope, *identity: UUID | int) -> T:
        """Read a row to change it, if it is in the state that the client knows; other writers wait."""
        thing = await self.lock(write, scope, *identity)
        write.precondition.check(thing)
        return thing

    async def lock(self, write: CatalogWrite, scope: Scope, *identity: UUID | int) -> T:
        """Read a row to change what hangs on it, in whatever state it is."""
        return await self.find(write.connection, scope, *identity, lock=FOR_UPDATE)

    async def read_page(
        self, connection: Connection, scope: Scope, filters: Filters, page: PageRequest
    ) -> Listed[T]:
        self._add_scope(filters, scope)
        rows = await fetch_page(connection, self.source, filters, page)
        return Listed(items=[self._convert(row) for row in rows.items], total_count=rows.total_count)

    async def load_all(self, connection: Connection, scope: Scope) -> list[T]:
        """Read all rows that count, in the order in which they were made."""
        filters = Filters()
        filters.add(self.live)
        self._add_scope(filters, scope)
        return await self.load_where(connection, filters, "")

    async def load(self, connection: Connection, identities: Sequence[Identity]) -> list[T]:
        """Read rows by their identities, of whatever account, locked against other writers."""
        if not identities:
            return []
        filters = Filters()
        arrays = [filters.bind(list(values)) for values in zip(*identities, strict=True)]
        keys = ", ".join(self.build_outside_sql(field) for field in self.identity)
        unnested = ", ".join(f"{array}::{self.identity_type}[]" for array in arrays)
        filters.add(f"({keys}) IN (SELECT * FROM unnest({unnested}))")  # noqa: S608 - our own names
        return await self.load_where(connection, filters)

    async def load_by(self, connection: Connection, field: str, values: Sequence[Any]) -> list[T]:
        """Read the rows with one of some values in a field, locked likewise."""
        if not values:
            return []
        filters = Filters()
        filters.add(f"{self.build_outside_sql(field)} = ANY ({{}})", list(values))
        return await self.load_where(connection, filters)

    async def load_where(self, connection: Connection, filters: Filters, lock: str = FOR_IMPORT) -> list[T]:
        """Read all rows that conditions let pass, of whatever account, in the order in which they were made."""
        order = "it.id" if self.identity == ("id",) else ", ".join(f"it.{field}" for field in self.identity)
        rows = await connection.fetch(
            f"SELECT {self.source.columns} FROM {self.source.tables} WHERE {filters.sql} ORDER BY {order} {lock}",  # noqa: S608 - our own names
            *filters.values,
        )
        return await asyncio.to_thread(lambda: [self._convert(row) for row in rows])

    async def load_parent_ids(self, connection: Connection, ids: Sequence[UUID]) -> set[UUID]:
        """Return the ids of the first parents of some rows."""
        parent = self.build_outside_sql(self.parents[0])
        statement = (
            f"SELECT DISTINCT {parent} FROM {self.source.tables} WHERE it.public_id = ANY ($1::uuid[])"  # noqa: S608 - our own names
        )
        return {row[0] for row in await connection.fetch(statement, list(ids))}

    async def count_siblings(self, connection: Connection, parent_ids: Sequence[UUID]) -> dict[UUID, int]:
        parent = self.build_outside_sql(self.parents[0])
        statement = (
            f"SELECT {parent}, count(*) FROM {self.source.tables} WHERE {parent} = ANY ($1::uuid[])"  # noqa: S608 - our own names
            f" GROUP BY {parent}"
        )
        return {row[0]: row[1] for row in await connection.fetch(statement, list(parent_ids))}

    async def load_sibling_values(
        self, connection: Connection, field: str, parent_ids: Sequence[UUID]
    ) -> dict[tuple[UUID, Any], UUID]:
        """Return which row of a parent has which value in a field."""
        parent = self.build_outside_sql(self.parents[0])
        statement = (
            f"SELECT {parent}, {self.build_outside_sql(field)}, it.public_id FROM {self.source.tables}"  # noqa: S608 - our own names
            f" WHERE {parent} = ANY ($1::uuid[])"
        )
        return {(row[0], row[1]): row[2] for row in await connection.fetch(statement, list(parent_ids))}

    async def insert(self, write: CatalogWrite, thing: T) -> None:
        """Add a row; its owner must be an account that is open."""
        if self.owner is not None and self.has_own_owner:
            owner_id: UUID | None = getattr(thing, self.owner.field)
            if owner_id is not None and not await is_open(write.connection, self.owner.role, owner_id):
                raise make_unknown_account_error(self.owner.role, self.owner.alias)
        self._touch(write, await self.insert_rows(write.connection, [thing]))
        write.record_creation(await self.load_subject(write.connection, thing), thing)

    async def update(self, write: CatalogWrite, before: T, after: T) -> T:
        """Write a row that was read with a lock, and return it as it is now.

        Where nothing differs nothing is written: the row keeps its state, and its clients their ETags.
        """
        if not find_changed_fields(before, after):
            return before
        after = move_forward(before, after)
        self._touch(write, await self.update_rows(write.connection, [after]))
        write.record_update(await self.load_subject(write.connection, after), before, after)
        return after

    async def delete(self, write: CatalogWrite, thing: T) -> None:
        """Remove a row that was read with a lock, and all that hangs on it."""
        subject = await self.load_subject(write.connection, thing)
        keys = " AND ".join(
            f"it.{self.find_column(field)} = {self._write_key(field, f'${place}')}"
            for place, field in enumerate(self.identity, 1)
        )
        statement = f"DELETE FROM {self.name} AS it WHERE {keys} RETURNING {self._touched}"  # noqa: S608 - our own names
        self._touch(write, [await write.connection.fetchval(statement, *self.identify(thing))])
        write.record_deletion(subject, thing)

    async def load_subject(self, connection: Connection, thing: T) -> AuditSubject:
        """Name a row for the audit trail, with its owner."""
        return self.name_subject(thing, await self._find_owner_id(connection, thing))

    def name_subject(self, thing: T, owner_id: UUID | None) -> AuditSubject:
        """Name a row for the audit trail; its owner is known already."""
        return AuditSubject(self.noun, "/".join(map(str, self.identify(thing))), owner_id)

    async def insert_rows(self, connection: Connection, things: Sequence[T]) -> list[int]:
        """Add rows in their order; return the keys of what they touch."""
        columns = ", ".join(_quote(self.find_column(field)) for field in self.fields)
        values = ", ".join(self._find_inside(field) for field in self.fields)
        return await self._write_rows(
            connection,
            f"INSERT INTO {self.name} AS it ({columns}) SELECT {values} FROM {await self._find_subselect(connection)}"  # noqa: S608 - our own names
            f" ORDER BY item.place RETURNING {self._touched}",
            things,
        )

    async def update_rows(self, connection: Connection, things: Sequence[T]) -> list[int]:
        """Write rows that are there; return the keys of what they touch."""
        settings = ", ".join(
            f"{_quote(field)} = {self._find_inside(field)}"
            for field in self.fields
            if field not in {*self.identity, "created_at"}
        )
        keys = " AND ".join(
            f"it.{self.find_column(field)} = {self._find_inside(field)}" for field in self.identity
        )
        return await self._write_rows(
            connection,
            f"UPDATE {self.name} AS it SET {settings} FROM {await self._find_subselect(connection)}"  # noqa: S608 - our own names
            f" WHERE {keys} RETURNING {self._touched}",
            things,
        )

    async def _write_rows(self, connection: Connection, statement: str, things: Sequence[T]) -> list[int]:
        rows = await connection.fetch(statement, msgspec.json.encode(things).decode())
        assert len(rows) == len(things), "every thing has a row"
        return [row[0] for row in rows]

    @cached_property
    def _column_types(self) -> dict[str, str]:
        return {}

    async def _find_subselect(self, connection: Connection) -> str:
        """Return the SQL of the rows in `$1`. The types of columns are asked once: migrations run before us."""
        if not self._column_types:
            self._column_types.update(
                {row[0]: row[1] for row in await connection.fetch(COLUMN_TYPES, self.name)}
            )
        types = {
            field: "uuid" if field in self.foreign else self._column_types[self.find_column(field)]
            for field in self.fields
        }
        columns = ", ".join(f"{_quote(field)} {types[field]}" for field in self.fields)
        names = ", ".join(map(_quote, self.fields))
        joins = " ".join(
            f"LEFT JOIN {table} AS {row} ON {row}.public_id = item.{field}"
            for field, (table, row) in self.foreign.items()
        )
        return (
            f"ROWS FROM (json_to_recordset($1::json) AS ({columns}))"
            f" WITH ORDINALITY AS item ({names}, place) {joins}"
        )

    async def _find_owner_id(self, connection: Connection, thing: T) -> UUID | None:
        if self.owner is None:
            return None
        if self.has_own_owner or self.owner.is_itself:
            return getattr(thing, self.owner.field if self.has_own_owner else "id")
        parent = self.references[self.parents[0]]
        statement = f"SELECT owner.public_id FROM {parent.source.tables} WHERE it.public_id = $1"  # noqa: S608 - our own names
        return await connection.fetchval(statement, getattr(thing, self.parents[0]))

    def _add_scope(self, filters: Filters, scope: Scope) -> None:
        if self.owner_row is not None:
            filters.add_given(f"{self.owner_row}.public_id = {{}}", scope.account_id)
        if self.hides_deleted:
            filters.add("it.deleted_at IS NULL")

    def _touch(self, write: CatalogWrite, keys: Sequence[int]) -> None:
        if self.touches is not None:
            for key in keys:
                write.touch(self.touches[0], key)

    @property
    def _touched(self) -> str:
        return f"it.{self.touches[1]}" if self.touches else "1"

    def _find_inside(self, field: str) -> str:
        return f"{self.foreign[field][1]}.id" if field in self.foreign else f"item.{_quote(field)}"

    def _write_key(self, field: str, value: str) -> str:
        if field not in self.foreign:
            return value
        return f"(SELECT id FROM {self.foreign[field][0]} WHERE public_id = {value})"  # noqa: S608 - our own names

    def _convert(self, row: Record) -> T:
        return msgspec.convert(dict(row), self.struct)


def _quote(name: str) -> str:
    """Write a name that may be a word of SQL's own, like `window`."""
    return f'"{name}"'
