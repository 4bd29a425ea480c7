"""Sets of rows ↔ structs: the SQL that moves many things of a kind at once.

A struct's fields are columns, but for `identity` (its public id) and `foreign` keys, which are public ids
outside and integers inside. Statements are put together from our own names, never from a client's words.
Rows travel as one JSON text; their columns' types are asked of the database, so no list here can be wrong.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.resource.changes import IndexedNoun
from adloom.runtime.postgres import Connection, Record

COLUMN_TYPES = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
     WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
"""
BATCH_MAX: Final = 2_000  # Rows in one statement: what is sent and awaited at a time.

Identity = tuple[Any, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Where the things of a kind are.

    `identity` are the fields by which one is known; `live` is the condition under which one is there for
    an export; `touched` is the column with the key of what the index must look at again, and its noun.
    """

    name: str
    struct: type[msgspec.Struct]
    identity: tuple[str, ...] = ("id",)
    identity_column: str = "public_id"
    identity_type: str = "uuid"
    foreign: Mapping[str, str] = {}
    joins: str = ""
    live: str = "true"
    owner: str = "NULL::uuid"
    touched: tuple[IndexedNoun, str] | None = None
    order: str = "it.id"

    @property
    def fields(self) -> tuple[str, ...]:
        """The struct's fields, in its order."""
        return self.struct.__struct_fields__

    def column(self, field: str) -> str:
        """Name the column of a field."""
        return self.identity_column if field == "id" else field

    @property
    def source(self) -> str:
        """What a SELECT reads: `it` is the table, each foreign table has its field's name."""
        joined = [
            f"LEFT JOIN {table} AS {field}_row ON {field}_row.id = it.{field}"
            for field, table in self.foreign.items()
        ]
        return f"{self.name} AS it {' '.join(joined)} {self.joins}"

    def outside(self, field: str) -> str:
        """Write a field's value as it is known outside."""
        return f"{field}_row.public_id" if field in self.foreign else f"it.{self.column(field)}"

    @property
    def selected(self) -> str:
        """The columns of a struct."""
        return ", ".join(f"{self.outside(field)} AS {field}" for field in self.fields)


async def column_types(connection: Connection, table: Table) -> dict[str, str]:
    """Ask for the types of a table's columns, by field; a foreign key is given as a public id."""
    types = {row[0]: row[1] for row in await connection.fetch(COLUMN_TYPES, table.name)}
    return {field: "uuid" if field in table.foreign else types[table.column(field)] for field in table.fields}


async def load(connection: Connection, table: Table, wanted: Sequence[Identity]) -> list[msgspec.Struct]:
    """Read things by their identities, locked against other writers, but not against the ledger's counts."""
    if not wanted:
        return []
    keys = ", ".join(table.outside(field) for field in table.identity)
    arrays = ", ".join(f"${place}::{table.identity_type}[]" for place in range(1, len(table.identity) + 1))
    rows = await connection.fetch(
        f"SELECT {table.selected} FROM {table.source}"  # noqa: S608 - our own names
        f" WHERE ({keys}) IN (SELECT * FROM unnest({arrays})) ORDER BY {table.order} FOR NO KEY UPDATE OF it",
        *map(list, zip(*wanted, strict=True)),
    )
    return await asyncio.to_thread(_structs, table, rows)


async def load_by(
    connection: Connection, table: Table, field: str, values: Sequence[str]
) -> list[msgspec.Struct]:
    """Read things by a natural key, locked likewise."""
    if not values:
        return []
    rows = await connection.fetch(
        f"SELECT {table.selected} FROM {table.source} WHERE it.{field} = ANY ($1::text[])"  # noqa: S608 - our own names
        f" ORDER BY {table.order} FOR NO KEY UPDATE OF it",
        list(values),
    )
    return await asyncio.to_thread(_structs, table, rows)


async def everything(connection: Connection, table: Table, account_id: UUID | None) -> list[msgspec.Struct]:
    """Read all that is there, of one account or of everybody, in the order in which it was made."""
    rows = await connection.fetch(
        f"SELECT {table.selected} FROM {table.source}"  # noqa: S608 - our own names
        f" WHERE ({table.live}) AND ($1::uuid IS NULL OR {table.owner} = $1) ORDER BY {table.order}",
        account_id,
    )
    return await asyncio.to_thread(_structs, table, rows)


async def insert(
    connection: Connection, table: Table, types: Mapping[str, str], things: Sequence[msgspec.Struct]
) -> list[int]:
    """Add things, in their order; give the keys of what they touch."""
    columns = ", ".join(_quoted(table.column(field)) for field in table.fields)
    values = ", ".join(_inside(table, field) for field in table.fields)
    return await _keys(
        connection,
        table,
        f"INSERT INTO {table.name} AS it ({columns}) SELECT {values} FROM {_items(table, types)}"  # noqa: S608 - our own names
        f" ORDER BY item.place RETURNING {_touched(table)}",
        things,
    )


async def update(
    connection: Connection, table: Table, types: Mapping[str, str], things: Sequence[msgspec.Struct]
) -> list[int]:
    """Write things that are there; give the keys of what they touch."""
    settings = ", ".join(
        f"{_quoted(field)} = {_inside(table, field)}"
        for field in table.fields
        if field not in {*table.identity, "created_at"}
    )
    keys = " AND ".join(f"it.{table.column(field)} = {_inside(table, field)}" for field in table.identity)
    return await _keys(
        connection,
        table,
        f"UPDATE {table.name} AS it SET {settings} FROM {_items(table, types)}"  # noqa: S608 - our own names
        f" WHERE {keys} RETURNING {_touched(table)}",
        things,
    )


async def _keys(
    connection: Connection, table: Table, statement: str, things: Sequence[msgspec.Struct]
) -> list[int]:
    rows = await connection.fetch(statement, msgspec.json.encode(things).decode())
    assert len(rows) == len(things), "every thing has a row"
    return [row[0] for row in rows] if table.touched else []


def _items(table: Table, types: Mapping[str, str]) -> str:
    columns = ", ".join(f"{_quoted(field)} {types[field]}" for field in table.fields)
    names = ", ".join(map(_quoted, table.fields))
    joined = [
        f"LEFT JOIN {foreign} AS {field}_row ON {field}_row.public_id = item.{field}"
        for field, foreign in table.foreign.items()
    ]
    return (
        f"ROWS FROM (json_to_recordset($1::json) AS ({columns})) WITH ORDINALITY AS item ({names}, place) "
        + " ".join(joined)
    )


def _quoted(name: str) -> str:
    """Write a name that may be a word of SQL's own."""
    return f'"{name}"'


def _inside(table: Table, field: str) -> str:
    return f"{field}_row.id" if field in table.foreign else f"item.{field}"


def _touched(table: Table) -> str:
    return f"it.{table.touched[1]}" if table.touched else "1"


def _structs(table: Table, rows: Sequence[Record]) -> list[msgspec.Struct]:
    return [msgspec.convert(dict(row), table.struct) for row in rows]
