"""What the nouns of the catalog have in common in SQL: rows that belong to an account or to the house.

A noun's struct has a field for each column, and `id` and the owner as public ids; the integer keys
stay in here. Statements are put together once, from our own names, never from a client's words.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.core.errors import NotFoundError
from adloom.resource import accounts as account_store
from adloom.resource.access import Scope
from adloom.resource.accounts import ACCOUNT_TABLES, unknown_account
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.etag import moved_forward
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record


class OwnedStruct(Protocol):
    """A thing of the catalog, whatever its noun."""

    @property
    def id(self) -> UUID:
        """Its public id."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        ...

    @property
    def updated_at(self) -> datetime:
        """When it was changed last."""
        ...


T = TypeVar("T", bound=OwnedStruct)
UNCHANGING = frozenset({"id", "created_at"})
NO_REFERENCES: Final[Mapping[str, str]] = MappingProxyType({})


class OwnedTable(Generic[T]):
    """The table of one noun, row ↔ struct.

    `references` names the fields that are public ids of rows of other tables, with their tables. A noun
    that is no `Noun` is not part of the index, so its changes need no notice.
    """

    def __init__(  # noqa: PLR0913 - what a noun is, in words
        self,
        struct: type[T],
        *,
        table: str,
        noun: str,
        owner: Role,
        not_found: type[NotFoundError],
        references: Mapping[str, str] = NO_REFERENCES,
    ) -> None:
        self._struct = struct
        self._noun = noun
        self._owner_role = owner
        self._not_found = not_found
        self.owner_field = f"{owner}_id"
        # Checkers do not know that a bound protocol is a struct; msgspec does.
        names = [field.name for field in msgspec.structs.fields(struct)]  # pyright: ignore[reportArgumentType] - see above
        self._columns = [name for name in names if name not in {"id", self.owner_field}]
        self._changing = [name for name in self._columns if name not in UNCHANGING]
        owners = ACCOUNT_TABLES[owner]
        selected = [
            "it.public_id AS id",
            f"owner.public_id AS {self.owner_field}",
            *(_selected(name, references.get(name)) for name in self._columns),
        ]
        self._source = RowSource(
            columns=", ".join(selected),
            tables=f"{table} AS it LEFT JOIN {owners} AS owner ON owner.id = it.{self.owner_field}",
            tiebreak="it.id",
        )
        keys = {**references, self.owner_field: owners}
        self._insert = _insert_statement(table, ["public_id", self.owner_field, *self._columns], keys)
        self._update = _update_statement(table, self._changing, references)
        self._delete = f"DELETE FROM {table} WHERE public_id = $1 RETURNING id"  # noqa: S608 - our own names

    async def find(self, connection: Connection, scope: Scope, thing_id: UUID) -> T:
        """Read a thing; what belongs to another account is not there."""
        return await self._one(connection, scope, thing_id, "")

    async def find_locked(self, write: CatalogWrite, scope: Scope, thing_id: UUID) -> T:
        """Read a thing to change it, in the state that the client knows; others who want to change it wait."""
        thing = await self.find_parent_locked(write, scope, thing_id)
        write.precondition.check(thing)
        return thing

    async def find_parent_locked(self, write: CatalogWrite, scope: Scope, thing_id: UUID) -> T:
        """Read a thing to change what hangs on it, whatever state the thing itself is in."""
        return await self._one(write.connection, scope, thing_id, "FOR UPDATE OF it")

    async def page(
        self, connection: Connection, scope: Scope, filters: Filters, page: PageRequest
    ) -> Listed[T]:
        """Read a page of the things of a scope."""
        self._add_scope(filters, scope)
        rows = await fetch_page(connection, self._source, filters, page)
        return Listed(items=[self._thing(row) for row in rows.items], total_count=rows.total_count)

    async def insert(self, write: CatalogWrite, thing: T) -> None:
        """Add a thing; its owner must be an account that is open."""
        owner_id: UUID | None = getattr(thing, self.owner_field)
        if owner_id is not None and not await account_store.is_open(
            write.connection, self._owner_role, owner_id
        ):
            raise unknown_account(self._owner_role, f"{self._owner_role}Id")
        values = [getattr(thing, name) for name in self._columns]
        key: int = await write.connection.fetchval(self._insert, thing.id, owner_id, *values)
        self._touch(write, key)
        write.record_creation(self.about(thing), _struct(thing))

    async def update(self, write: CatalogWrite, before: T, after: T) -> T:
        """Write a thing that was read with a lock before, and give it as it is now.

        Where nothing differs nothing is written: the thing keeps its state, and its clients their tags.
        """
        if not find_changed_fields(_struct(before), _struct(after)):
            return before
        after = moved_forward(before, after)
        values = [getattr(after, name) for name in self._changing]
        key: int = await write.connection.fetchval(self._update, after.id, *values)
        self._touch(write, key)
        write.record_update(self.about(after), _struct(before), _struct(after))
        return after

    async def delete(self, write: CatalogWrite, thing: T) -> None:
        """Remove a thing that was read with a lock before, and all that hangs on it."""
        key: int = await write.connection.fetchval(self._delete, thing.id)
        self._touch(write, key)
        write.record_deletion(self.about(thing), _struct(thing))

    def about(self, thing: T) -> AuditSubject:
        """Name a thing in the trail."""
        return AuditSubject(str(self._noun), str(thing.id), getattr(thing, self.owner_field))

    def _touch(self, write: CatalogWrite, key: int) -> None:
        if isinstance(self._noun, IndexedNoun):
            write.touch(self._noun, key)

    async def _one(self, connection: Connection, scope: Scope, thing_id: UUID, lock: str) -> T:
        filters = Filters()
        filters.add("it.public_id = {}", thing_id)
        self._add_scope(filters, scope)
        statement = f"SELECT {self._source.columns} FROM {self._source.tables} WHERE {filters.sql} {lock}"  # noqa: S608 - our own names
        row = await connection.fetchrow(statement, *filters.values)
        if row is None:
            raise self._not_found(f"There is no {self._noun} with this id.")
        return self._thing(row)

    def _add_scope(self, filters: Filters, scope: Scope) -> None:
        filters.add_given("owner.public_id = {}", scope.account_id)

    def _thing(self, row: Record) -> T:
        return msgspec.convert(dict(row), self._struct)


def _struct(thing: OwnedStruct) -> msgspec.Struct:
    assert isinstance(thing, msgspec.Struct)
    return thing


def _selected(name: str, referenced: str | None) -> str:
    if referenced is None:
        return f"it.{name}"
    return f"(SELECT public_id FROM {referenced} WHERE id = it.{name}) AS {name}"  # noqa: S608 - our own names


def _place(place: int, referenced: str | None) -> str:
    if referenced is None:
        return f"${place}"
    return f"(SELECT id FROM {referenced} WHERE public_id = ${place})"  # noqa: S608 - our own names


def _insert_statement(table: str, columns: Sequence[str], references: Mapping[str, str]) -> str:
    places = [_place(place, references.get(column)) for place, column in enumerate(columns, 1)]
    return f"""
        INSERT INTO {table} ({", ".join(columns)}) VALUES ({", ".join(places)}) RETURNING id
    """  # noqa: S608 - our own names


def _update_statement(table: str, columns: Sequence[str], references: Mapping[str, str]) -> str:
    settings = ", ".join(
        f"{column} = {_place(place, references.get(column))}" for place, column in enumerate(columns, 2)
    )
    return f"UPDATE {table} SET {settings} WHERE public_id = $1 RETURNING id"  # noqa: S608 - our own names
