"""Every committed write is audited, raises the catalog's version and notifies the indexes.

The version is raised under the lock of its one row, so versions have the order of the
commits. A lost notice is no harm: indexes also poll the version.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec
import structlog

from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import UserId
from adloom.resource.audit import store as audit_store
from adloom.resource.audit.difference import (
    describe_change,
    describe_creation,
    describe_deletion,
    name_action,
)
from adloom.resource.audit.entry import AuditSubject, Author, NewAuditEntry, make_system_author
from adloom.resource.etag import UNCONDITIONAL, Precondition
from adloom.resource.quotas import check_quotas
from adloom.runtime.postgres import Connection, Pool, Record
from adloom.runtime.settings import QuotaSettings
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, retry_if_disconnected

NOTICE_CHANNEL = "adloom:catalog:changed"
NOTICE_SECONDS_MAX = 1.0  # The write is committed and its client waits; the indexes poll the version too.

CURRENT_VERSION = "SELECT version FROM catalog_version"
RAISE_VERSION = "UPDATE catalog_version SET version = version + 1 RETURNING version"
INSERT_CHANGES = """
    INSERT INTO catalog_changes (version, noun, noun_key)
    SELECT $1, noun, noun_key FROM unnest($2::text[], $3::integer[]) AS changed (noun, noun_key)
"""
# They show whether anything has changed. Followers look every second or so, because a notice can be lost.
# They look at the same moments, and together ask the database once a process.
MARKS: Final = """
    SELECT version, (SELECT last_value FROM page_versions),
           (SELECT jsonb_object_agg(projection, entry_id) FROM projection_cursors)
      FROM catalog_version
"""
USER = "SELECT public_id FROM users WHERE public_id = $1"
# Indexes that are further behind than this read everything; the list is theirs alone.
PRUNE_CHANGES = "DELETE FROM catalog_changes WHERE version < $1"
CHANGES_KEPT = 10_000
# Actions after which there is one more of a noun.
MAKING = frozenset({"create", "restore"})

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class IndexedNoun(StrEnum):
    """What the index is made of, and what budgets follow; links and assignments count as changes of their placement."""

    PLACEMENT = "placement"
    BANNER = "banner"
    CAMPAIGN = "campaign"
    SITE = "site"
    ADVERTISER = "advertiser"  # Its budget; where more changes, its campaigns have changed too.


class CatalogWrite:
    """One transaction on the catalog, and what it has touched and done so far.

    `precondition` is what the client has said about the thing that it wants to change.
    """

    def __init__(
        self, connection: Connection, author: Author, precondition: Precondition, *, at: datetime
    ) -> None:
        self.connection = connection
        self.author = author
        self.at = at
        self.precondition = precondition
        self.touched: set[tuple[IndexedNoun, int]] = set()
        self.entries: list[NewAuditEntry] = []
        self.made: set[str] = set()  # Nouns of which there is one more than before.

    def touch(self, noun: IndexedNoun, key: int) -> None:
        """Mark what the index must read again."""
        self.touched.add((noun, key))

    async def touch_all(self, noun: IndexedNoun, statement: str, thing_id: UUID) -> None:
        """Mark what a statement finds by a public id; it selects keys."""
        for row in await self.connection.fetch(statement, thing_id):
            self.touch(noun, row[0])

    def record_creation(self, about: AuditSubject, thing: msgspec.Struct) -> None:
        self.entries.append(NewAuditEntry(about, "create", describe_creation(thing)))

    def record_update(self, about: AuditSubject, before: msgspec.Struct, after: msgspec.Struct) -> None:
        self.entries.append(NewAuditEntry(about, name_action(before, after), describe_change(before, after)))

    def record_deletion(self, about: AuditSubject, thing: msgspec.Struct) -> None:
        self.entries.append(NewAuditEntry(about, "delete", describe_deletion(thing)))

    async def write_audit(self) -> None:
        """Append what was done so far; the end of the transaction does so, and a long one in between."""
        self.made |= {entry.about.noun for entry in self.entries if entry.action in MAKING}
        await audit_store.append(self.connection, self.author, self.entries, at=self.at)
        self.entries.clear()


class Catalog:
    """The way to read and to write the catalog, for one author."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        pool: Pool,
        valkey: Valkey,
        *,
        clock: Clock | None = None,
        author: Author | None = None,
        precondition: Precondition = UNCONDITIONAL,
        quotas: QuotaSettings | None = None,
    ) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock or SystemClock()
        self._author = author or make_system_author("catalog")
        self._precondition = precondition
        self._quotas = quotas

    def with_author(self, author: Author, precondition: Precondition = UNCONDITIONAL) -> "Catalog":
        """Return the same catalog for another author."""
        return Catalog(
            self._pool,
            self._valkey,
            clock=self._clock,
            author=author,
            precondition=precondition,
            quotas=self._quotas,
        )

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[Connection]:
        async with self._pool.acquire() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[CatalogWrite]:
        """Open a transaction; when it ends well it is committed and the indexes are notified."""
        version: int | None = None
        async with self._pool.acquire() as connection, connection.transaction():
            write = CatalogWrite(connection, self._author, self._precondition, at=self._clock.now())
            yield write
            await write.write_audit()
            if self._author.account_id is not None and self._quotas is not None:
                await check_quotas(connection, self._author.account_id, write.made, self._quotas)
            # Last, because the lock of the version makes all other writes wait for our commit.
            if write.touched:
                version = await _record(write)
        if version is not None:
            await self._notify(version)

    async def _notify(self, version: int) -> None:
        try:
            async with asyncio.timeout(NOTICE_SECONDS_MAX):
                await retry_if_disconnected(lambda: self._valkey.publish(NOTICE_CHANNEL, str(version)))
        except VALKEY_AWAY as error:
            log.warning("catalog_notice_not_sent", version=version, error=repr(error))


async def read_version(connection: Connection) -> int:
    return await connection.fetchval(CURRENT_VERSION)


class ChangeMarks(NamedTuple):
    """The marks of a moment.

    The number of pages grows before a page is committed: who has seen it must look again for a while.
    """

    catalog: int
    pages: int
    cursors: Mapping[str, str]


async def read_marks(connection: Connection) -> ChangeMarks:
    return _build(await connection.fetchrow(MARKS))


async def read_marks_together(pool: Pool) -> ChangeMarks:
    """Read the marks as of now, in one statement for all calls of the same moment."""
    asked = _asked.get(pool)
    if asked is None:
        asked = _asked[pool] = asyncio.ensure_future(_read_next(pool))
    return await asyncio.shield(asked)


_asked: Final[WeakKeyDictionary[Pool, asyncio.Future[ChangeMarks]]] = WeakKeyDictionary()


async def _read_next(pool: Pool) -> ChangeMarks:
    # This task has its turn after all who are due; who asks from now on has a later moment in mind.
    _asked.pop(pool, None)
    return _build(await pool.fetchrow(MARKS))


def _build(row: Record | None) -> ChangeMarks:
    assert row is not None, "the catalog has a version"
    version, pages, cursors = row
    return ChangeMarks(version, pages, cursors or {})


async def find_creator(write: CatalogWrite) -> UserId | None:
    """Return the user behind a write; machines, the command line and parts of the system are none."""
    try:
        subject = UUID(write.author.subject)
    except ValueError:
        return None
    found: UUID | None = await write.connection.fetchval(USER, subject)
    return None if found is None else UserId(found)


async def _record(write: CatalogWrite) -> int:
    version: int = await write.connection.fetchval(RAISE_VERSION)
    nouns = [noun.value for noun, _ in write.touched]
    keys = [key for _, key in write.touched]
    await write.connection.execute(INSERT_CHANGES, version, nouns, keys)
    if version % CHANGES_KEPT == 0:
        await write.connection.execute(PRUNE_CHANGES, version - CHANGES_KEPT)
    return version
