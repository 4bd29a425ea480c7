"""What advertisers and publishers have in common in SQL: rows that are accounts themselves.

An account is its own owner, so who acts for it sees it, and no other.
"""

from datetime import datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from adloom.core.actor import Role
from adloom.core.errors import NotFoundError
from adloom.resource.access import Scope
from adloom.resource.accounts import ACCOUNT_TABLES
from adloom.resource.audit.difference import find_changed_fields
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite
from adloom.resource.etag import moved_forward
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record


class AccountStruct(Protocol):
    """An account, whatever its role."""

    @property
    def id(self) -> UUID:
        """Its public id."""
        ...

    @property
    def updated_at(self) -> datetime:
        """When it was changed last."""
        ...


T = TypeVar("T", bound=AccountStruct)


class AccountTable(Generic[T]):
    """The table of one kind of account, row ↔ struct."""

    def __init__(self, struct: type[T], *, role: Role, not_found: type[NotFoundError]) -> None:
        self._struct = struct
        self._role = role
        self._not_found = not_found
        # Checkers do not know that a bound protocol is a struct; msgspec does.
        names = [field.name for field in msgspec.structs.fields(struct)]  # pyright: ignore[reportArgumentType] - see above
        self._columns = [name for name in names if name != "id"]
        table = ACCOUNT_TABLES[role]
        self._source = RowSource(
            columns=", ".join(["it.public_id AS id", *(f"it.{name}" for name in self._columns)]),
            tables=f"{table} AS it",
            tiebreak="it.id",
        )
        places = ", ".join(f"${place}" for place in range(1, len(names) + 1))
        self._insert = f"INSERT INTO {table} (public_id, {', '.join(self._columns)}) VALUES ({places})"  # noqa: S608 - our own names
        settings = ", ".join(f"{name} = ${place}" for place, name in enumerate(self._columns, 2))
        self._update = f"UPDATE {table} SET {settings} WHERE public_id = $1"  # noqa: S608 - our own names

    async def find(self, connection: Connection, scope: Scope, account_id: UUID, lock: str = "") -> T:
        """Read an account; another one than that of the scope is not there."""
        filters = Filters()
        filters.add("it.public_id = {}", account_id)
        filters.add_given("it.public_id = {}", scope.account_id)
        statement = f"SELECT {self._source.columns} FROM {self._source.tables} WHERE {filters.sql} {lock}"  # noqa: S608 - our own names
        row = await connection.fetchrow(statement, *filters.values)
        if row is None:
            raise self._not_found(f"There is no {self._role} with this id.")
        return self._account(row)

    async def find_locked(self, write: CatalogWrite, scope: Scope, account_id: UUID) -> T:
        """Read an account to change it, in the state that the client knows."""
        account = await self.find(write.connection, scope, account_id, "FOR UPDATE")
        write.precondition.check(account)
        return account

    async def page(
        self, connection: Connection, scope: Scope, filters: Filters, page: PageRequest
    ) -> Listed[T]:
        """Read a page of the accounts of a scope."""
        filters.add_given("it.public_id = {}", scope.account_id)
        rows = await fetch_page(connection, self._source, filters, page)
        return Listed(items=[self._account(row) for row in rows.items], total_count=rows.total_count)

    async def insert(self, write: CatalogWrite, account: T) -> None:
        """Add an account."""
        await write.connection.execute(self._insert, account.id, *self._values(account))
        write.record_creation(self._about(account), _struct(account))

    async def update(self, write: CatalogWrite, before: T, after: T) -> T:
        """Write an account that was read with a lock before, and give it as it is now."""
        if not find_changed_fields(_struct(before), _struct(after)):
            return before
        after = moved_forward(before, after)
        await write.connection.execute(self._update, after.id, *self._values(after))
        write.record_update(self._about(after), _struct(before), _struct(after))
        return after

    def _about(self, account: T) -> AuditSubject:
        return AuditSubject(self._role.value, str(account.id), account.id)

    def _values(self, account: T) -> list[object]:
        return [getattr(account, name) for name in self._columns]

    def _account(self, row: Record) -> T:
        return msgspec.convert(dict(row), self._struct)


def _struct(account: AccountStruct) -> msgspec.Struct:
    assert isinstance(account, msgspec.Struct)
    return account
