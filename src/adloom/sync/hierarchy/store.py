"""What the nouns of the hierarchy have in common in SQL.

What is deleted stays in its table, out of sight, because statistics are still about it. What something hangs on
cannot be deleted; whoever hangs something on a thing locks the thing first.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Protocol, TypeVar, cast
from uuid import UUID

import asyncpg
import msgspec

from adloom.core.actor import Role
from adloom.core.errors import FieldProblem, NotFoundError
from adloom.resource import accounts as account_store
from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite
from adloom.resource.owned_table import NO_REFERENCES, OwnedStruct, OwnedTable
from adloom.runtime.listing import Filters
from adloom.sync.hierarchy.model import ExternalIdTakenError, StillInUseError
from adloom.sync.seller import unknown_seller

NAMED_MAX: Final = 3
OWNER: Final = Role.ADVERTISER


class Below(msgspec.Struct, frozen=True, kw_only=True):
    """What hangs on a thing: where it is, which column names the thing, and what people call it."""

    table: str
    column: str
    words: str


class PresentStruct(OwnedStruct, Protocol):
    """A thing of the hierarchy."""

    @property
    def advertiser_id(self) -> UUID:
        """Whose it is."""
        ...

    @property
    def name(self) -> str:
        """What people call it."""
        ...


T = TypeVar("T", bound=PresentStruct)


class PresentTable(OwnedTable[T]):
    """The table of one noun, of which only what is not deleted is seen.

    `external_field` is where a client names what the platform calls it.
    """

    def __init__(  # noqa: PLR0913 - what a noun is, in words
        self,
        struct: type[T],
        *,
        table: str,
        noun: str,
        not_found: type[NotFoundError],
        references: Mapping[str, str] = NO_REFERENCES,
        below: Below | None = None,
        external_field: str = "externalId",
    ) -> None:
        super().__init__(
            struct, table=table, noun=noun, owner=OWNER, not_found=not_found, references=references
        )
        self._words = noun.replace("_", " ")
        self._external_field = external_field
        self._below = below
        self._hanging = "" if below is None else _hanging_statement(table, below)

    async def insert(self, write: CatalogWrite, thing: T) -> None:
        """Add a thing; its seller must be an advertiser who is not deleted."""
        if not await account_store.is_open(write.connection, OWNER, thing.advertiser_id):
            raise unknown_seller()
        with self._external_id_may_be_taken():
            await super().insert(write, thing)

    async def update(self, write: CatalogWrite, before: T, after: T) -> T:
        """Write a thing that was read with a lock before, and give it as it is now."""
        with self._external_id_may_be_taken():
            return await super().update(write, before, after)

    async def remove(self, write: CatalogWrite, thing: T, *, now: datetime) -> None:
        """Delete a thing that was read with a lock before, unless something hangs on it."""
        if self._below is not None:
            await self._check_nothing_hangs_on(write, thing, self._below.words)
        await self.update(write, thing, _deleted(thing, now))

    def _add_scope(self, filters: Filters, scope: Scope) -> None:
        super()._add_scope(filters, scope)
        filters.add("it.deleted_at IS NULL")

    async def _check_nothing_hangs_on(self, write: CatalogWrite, thing: T, words: str) -> None:
        rows = await write.connection.fetch(self._hanging, thing.id)
        if rows:
            names = ", ".join(f"«{row['name']}»" for row in rows)
            more = rows[0]["total"] - len(rows)
            raise StillInUseError(
                f"The {self._words} «{thing.name}» still has {words}: {names}"
                f"{f' and {more} more' if more else ''}. Delete them first."
            )

    @contextmanager
    def _external_id_may_be_taken(self) -> Generator[None]:
        try:
            yield
        except asyncpg.UniqueViolationError as error:
            problem = FieldProblem(self._external_field, f"is that of another {self._words}")
            raise ExternalIdTakenError(
                f"Another {self._words} has this external id: its statistics would be counted twice.",
                errors=[problem],
            ) from error


def _deleted(thing: T, now: datetime) -> T:
    assert isinstance(thing, msgspec.Struct)
    return cast("T", msgspec.structs.replace(thing, deleted_at=now, updated_at=now))


def _hanging_statement(table: str, below: Below) -> str:
    return f"""
        SELECT name, count(*) OVER () AS total FROM {below.table}
         WHERE {below.column} = (SELECT id FROM {table} WHERE public_id = $1) AND deleted_at IS NULL
         ORDER BY name LIMIT {NAMED_MAX:d}
    """  # noqa: S608 - our own names
