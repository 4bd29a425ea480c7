"""What the nouns of the catalog have in common in SQL: rows that belong to an account or to the house.

A noun's struct has a field for each column, and `id` and the owner as public ids; the integer keys
stay in here. Statements are put together once, from our own names, never from a client's words.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from adloom.catalog.access import Scope
from adloom.catalog.account import store as account_store
from adloom.catalog.account.model import ACCOUNT_TABLES, unknown_account
from adloom.catalog.changes import CatalogWrite, Noun
from adloom.core.actor import Role
from adloom.core.errors import NotFoundError
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, page_of_rows
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


T = TypeVar("T", bound=OwnedStruct)
UNCHANGING = frozenset({"id", "created_at"})


class OwnedTable(Generic[T]):
    """The table of one noun, row ↔ struct."""

    def __init__(
        self, struct: type[T], *, table: str, noun: Noun, owner: Role, not_found: type[NotFoundError]
    ) -> None:
        self._struct = struct
        self._noun = noun
        self._owner_role = owner
        self._not_found = not_found
        self._owner_field = f"{owner}_id"
        # mypy-like checkers do not know that a bound protocol is a struct; msgspec does.
        names = [field.name for field in msgspec.structs.fields(struct)]  # pyright: ignore[reportArgumentType] - see above
        self._columns = [name for name in names if name not in {"id", self._owner_field}]
        self._changing = [name for name in self._columns if name not in UNCHANGING]
        owners = ACCOUNT_TABLES[owner]
        selected = [
            "it.public_id AS id",
            f"owner.public_id AS {self._owner_field}",
            *(f"it.{name}" for name in self._columns),
        ]
        self._source = RowSource(
            columns=", ".join(selected),
            tables=f"{table} AS it LEFT JOIN {owners} AS owner ON owner.id = it.{self._owner_field}",
            tiebreak="it.id",
        )
        self._insert = _insert_statement(table, self._owner_field, owners, self._columns)
        self._update = _update_statement(table, self._changing)
        self._delete = f"DELETE FROM {table} WHERE public_id = $1 RETURNING id"  # noqa: S608 - our own names

    async def find(self, connection: Connection, scope: Scope, thing_id: UUID) -> T:
        """Read a thing; what belongs to another account is not there."""
        return await self._one(connection, scope, thing_id, "")

    async def find_locked(self, write: CatalogWrite, scope: Scope, thing_id: UUID) -> T:
        """Read a thing to change it; others who want to change it wait."""
        return await self._one(write.connection, scope, thing_id, "FOR UPDATE OF it")

    async def page(
        self, connection: Connection, scope: Scope, filters: Filters, page: PageRequest
    ) -> Listed[T]:
        """Read a page of the things of a scope."""
        self._add_scope(filters, scope)
        rows = await page_of_rows(connection, self._source, filters, page)
        return Listed(items=[self._thing(row) for row in rows.items], total_count=rows.total_count)

    async def insert(self, write: CatalogWrite, thing: T) -> None:
        """Add a thing; its owner must be an account that is open."""
        owner_id: UUID | None = getattr(thing, self._owner_field)
        if owner_id is not None and not await account_store.is_open(
            write.connection, self._owner_role, owner_id
        ):
            raise unknown_account(self._owner_role)
        values = [getattr(thing, name) for name in self._columns]
        key: int = await write.connection.fetchval(self._insert, thing.id, owner_id, *values)
        write.touch(self._noun, key)

    async def update(self, write: CatalogWrite, thing: T) -> None:
        """Write a thing that was read with a lock before."""
        values = [getattr(thing, name) for name in self._changing]
        key: int = await write.connection.fetchval(self._update, thing.id, *values)
        write.touch(self._noun, key)

    async def delete(self, write: CatalogWrite, thing: T) -> None:
        """Remove a thing that was read with a lock before, and all that hangs on it."""
        key: int = await write.connection.fetchval(self._delete, thing.id)
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


def _insert_statement(table: str, owner_field: str, owners: str, columns: Sequence[str]) -> str:
    places = ", ".join(f"${place}" for place in range(3, len(columns) + 3))
    return f"""
        INSERT INTO {table} (public_id, {owner_field}, {", ".join(columns)})
        VALUES ($1, (SELECT id FROM {owners} WHERE public_id = $2), {places})
        RETURNING id
    """  # noqa: S608 - our own names


def _update_statement(table: str, columns: Sequence[str]) -> str:
    settings = ", ".join(f"{column} = ${place}" for place, column in enumerate(columns, 2))
    return f"UPDATE {table} SET {settings} WHERE public_id = $1 RETURNING id"  # noqa: S608 - our own names
