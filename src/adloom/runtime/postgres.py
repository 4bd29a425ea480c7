"""Connections to PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

CONNECT_SECONDS_MAX = 5.0
COMMAND_SECONDS_MAX = 30.0

# Text, because the driver's classes are generic in its stubs only.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Record: TypeAlias = asyncpg.Record


@asynccontextmanager
async def open_pool(database_url: str, *, size_max: int) -> AsyncGenerator[Pool]:
    """Open a pool that makes its connections when they are first needed, and close it at the end."""
    pool = asyncpg.create_pool(
        database_url,
        min_size=0,
        max_size=size_max,
        timeout=CONNECT_SECONDS_MAX,
        command_timeout=COMMAND_SECONDS_MAX,
        init=_set_codecs,
    )
    await pool
    try:
        yield pool
    finally:
        # A connection in use may hang on a server that is gone; do not wait for it for ever.
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await pool.close()
        except TimeoutError:
            pool.terminate()


async def is_reachable(pool: Pool) -> bool:
    """Tell whether the database answers."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            return await pool.fetchval("SELECT true")
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False


async def _set_codecs(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[1:]),
        format="binary",
    )
