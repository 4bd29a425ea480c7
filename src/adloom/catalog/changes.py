"""Every committed write raises the catalog's version and notifies the indexes.

The version is raised under the lock of its one row, so versions have the order of the
commits. A lost notice is no harm: indexes also look at the version by themselves.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from enum import StrEnum

import structlog
from redis.exceptions import RedisError

from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.valkey import Valkey

NOTICE_CHANNEL = "adloom:catalog:changed"

RAISE_VERSION = "UPDATE catalog_version SET version = version + 1 RETURNING version"
INSERT_CHANGES = """
    INSERT INTO catalog_changes (version, noun, noun_key)
    SELECT $1, noun, noun_key FROM unnest($2::text[], $3::integer[]) AS changed (noun, noun_key)
"""
# Indexes that are further behind than this read everything; the list is theirs alone.
PRUNE_CHANGES = "DELETE FROM catalog_changes WHERE version < $1"
CHANGES_KEPT = 10_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Noun(StrEnum):
    """What the index is made of; links and assignments count as changes of their placement."""

    PLACEMENT = "placement"
    BANNER = "banner"
    CAMPAIGN = "campaign"


class CatalogWrite:
    """One transaction on the catalog, and what it has touched so far."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.touched: set[tuple[Noun, int]] = set()

    def touch(self, noun: Noun, key: int) -> None:
        """Say that the index must look at this thing again."""
        self.touched.add((noun, key))


class Catalog:
    """The way to read and to write the catalog."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self._pool = pool
        self._valkey = valkey

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[Connection]:
        """Give a connection for reading."""
        async with self._pool.acquire() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[CatalogWrite]:
        """Give a transaction; when it ends well it is committed and the indexes are notified."""
        version: int | None = None
        async with self._pool.acquire() as connection, connection.transaction():
            write = CatalogWrite(connection)
            yield write
            if write.touched:
                version = await _record(write)
        if version is not None:
            await self._notify(version)

    async def _notify(self, version: int) -> None:
        try:
            await self._valkey.publish(NOTICE_CHANNEL, str(version))
        except (RedisError, OSError) as error:
            log.warning("catalog_notice_not_sent", version=version, error=repr(error))


async def _record(write: CatalogWrite) -> int:
    version: int = await write.connection.fetchval(RAISE_VERSION)
    nouns = [noun.value for noun, _ in write.touched]
    keys = [key for _, key in write.touched]
    await write.connection.execute(INSERT_CHANGES, version, nouns, keys)
    if version % CHANGES_KEPT == 0:
        await write.connection.execute(PRUNE_CHANGES, version - CHANGES_KEPT)
    return version
