"""Databases that tests use one after another: emptying one is faster than making one.

What a test has written is deleted, and partitions that it has added are dropped. A database whose schema is
another than before is dropped, and so is one that was emptied often, because deleted rows leave traces.
"""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
import msgspec

Result = TypeVar("Result")
USES_MAX = 200
DELETE_BYTES_MAX = (
    128 * 1024
)  # TRUNCATE makes new files for a table and its indexes, so it is for large ones.
TERMINATE_MS_MAX = 5_000
OWN = 16_384  # The first object number that is not PostgreSQL's own.

# A changed row of these has another transaction number. That of `pg_class` changes also by TRUNCATE, and so does what
# is known of the size of an index.
CHANGED_ROWS = {
    "pg_attrdef": "oid",
    "pg_attribute": "attrelid",
    "pg_constraint": "oid",
    "pg_index": "indexrelid",
    "pg_namespace": "oid",
    "pg_proc": "oid",
    "pg_trigger": "oid",
    "pg_type": "oid",
}
SCHEMA = f"""
    SELECT concat_ws(' ', {
    ", ".join(
        f"(SELECT count(*) || ':' || sum(xmin::text::bigint) FROM {table} WHERE {key} >= {OWN})"
        for table, key in CHANGED_ROWS.items()
    )
},
        (SELECT md5(string_agg(concat_ws(' ', oid, relname, relkind, relpersistence, reloptions,
                                         relkind <> 'i' AND reltuples >= 0), ',' ORDER BY oid))
           FROM pg_class WHERE oid >= {OWN} AND relkind IN ('r', 'p', 'i', 'I', 'v', 'm', 'S')))
"""  # noqa: S608 - our own
TABLES = f"""
    SELECT oid, oid::regclass::text AS name, pg_relation_size(oid) AS bytes
      FROM pg_class
     WHERE oid >= {OWN} AND relkind IN ('r', 'p') AND relnamespace <> 'pg_toast'::regnamespace
"""  # noqa: S608 - our own
DISCONNECT = f"""
    SELECT pg_terminate_backend(pid, {TERMINATE_MS_MAX})
      FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
"""  # noqa: S608 - our own
RESTART_SEQUENCES = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"


class Database(msgspec.Struct, kw_only=True):
    """A database, and what it was when it was made."""

    name: str
    connection: Any
    schema: str
    tables: frozenset[int]
    rows: dict[str, str]  # Of the tables that are not empty.
    uses: int = 0


class Databases:
    """The databases of this test process."""

    def __init__(self, template_url: str) -> None:
        self._parts = urlsplit(template_url)
        self._loop = asyncio.new_event_loop()
        self._free: list[Database] = []
        self._lent: dict[str, Database] = {}
        self._made = 0

    @contextlib.contextmanager
    def lend(self) -> Generator[str]:
        """Lend an empty database with the newest schema, to be called outside of an event loop."""
        database = self._free.pop() if self._free else self._run(self._make())
        url = self._url(database.name)
        self._lent[url] = database
        yield url
        del self._lent[url]
        if self._run(self._empty(database)):
            self._free.append(database)
        else:
            self._run(self._drop(database))

    def empty(self, url: str) -> None:
        """Empty a database that is lent, whose user stays connected but has no transaction."""
        assert self._run(_empty(self._lent[url])), "the schema has changed"

    def stop(self) -> None:
        for database in self._free:
            self._run(self._drop(database))
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(coroutine)

    def _url(self, name: str) -> str:
        return self._parts._replace(path=f"/{name}").geturl()

    async def _make(self) -> Database:
        self._made += 1
        name, template = f"test_{os.getpid()}_{self._made}", self._parts.path.removeprefix("/")
        await self._command(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        connection = await asyncpg.connect(self._url(name))
        found = await connection.fetch(TABLES)
        return Database(
            name=name,
            connection=connection,
            schema=await connection.fetchval(SCHEMA),
            tables=frozenset(row["oid"] for row in found),
            rows={row["name"]: await _rows(connection, row["name"]) for row in found if row["bytes"]},
        )

    async def _drop(self, database: Database) -> None:
        await database.connection.close()
        await self._command(f"DROP DATABASE {database.name} WITH (FORCE)")

    async def _command(self, command: str) -> None:
        server = await asyncpg.connect(self._url("template1"))
        await server.execute(command)
        await server.close()

    async def _empty(self, database: Database) -> bool:
        """Empty the tables, and return whether the database is now as it was made."""
        database.uses += 1
        if database.uses >= USES_MAX or database.connection.is_closed():
            return False
        try:
            await database.connection.execute(DISCONNECT)
            return await _empty(database)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False


async def _empty(database: Database) -> bool:
    connection = database.connection
    found = await connection.fetch(TABLES)
    added = [row["name"] for row in found if row["oid"] not in database.tables]
    kept = [row for row in found if row["oid"] in database.tables and row["bytes"]]
    seeded = [row["name"] for row in kept if row["name"] in database.rows]
    written = [row for row in kept if row["name"] not in database.rows]
    commands = [
        "SET LOCAL session_replication_role = replica",  # No triggers, and no look at what refers to a row.
        *([f"DROP TABLE {', '.join(added)} CASCADE"] if added else ()),
        *(
            f"TRUNCATE {row['name']} CASCADE"
            if row["bytes"] > DELETE_BYTES_MAX
            else f"DELETE FROM {row['name']}"  # noqa: S608 - our own
            for row in written
        ),
        RESTART_SEQUENCES,
    ]
    async with connection.transaction():
        await connection.execute(";\n".join(commands))
        for name in seeded:
            if await _rows(connection, name) != database.rows[name]:
                await connection.execute(f"DELETE FROM {name}")  # noqa: S608 - our own
                await connection.execute(
                    f"INSERT INTO {name} SELECT * FROM json_populate_recordset(NULL::{name}, $1)",  # noqa: S608 - our own
                    database.rows[name],
                )
    return database.schema == await connection.fetchval(SCHEMA)


async def _rows(connection: Any, table: str) -> str:
    return await connection.fetchval(f"SELECT coalesce(json_agg(rows), '[]') FROM {table} AS rows")  # noqa: S608 - our own
