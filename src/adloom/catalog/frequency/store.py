"""SQL of frequency caps.

They hang on a banner, so whose they are is told by it, and a change counts as one of the banner.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

import asyncpg
import msgspec

from adloom.catalog.banner.model import Banner
from adloom.catalog.banner.store import banners
from adloom.catalog.frequency.model import FrequencyCap, FrequencyCapExistsError, FrequencyCapNotFoundError
from adloom.resource.access import Scope
from adloom.resource.audit.entry import AuditSubject
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Record

ONE_A_WINDOW: Final = "frequency_caps_one_a_window"
# A bare list has an end too; whoever has more asks banner by banner.
LISTED_MAX: Final = 10_000

CAPS: Final = """
    SELECT it.public_id AS id, banner.public_id AS banner_id, it.max_impressions_per_user, it."window",
           it.created_at, it.updated_at, owner.public_id AS owner_id
      FROM frequency_caps AS it
      JOIN banners AS banner ON banner.id = it.banner_id
      LEFT JOIN advertisers AS owner ON owner.id = banner.advertiser_id
     WHERE {filters}
"""
INSERT: Final = """
    INSERT INTO frequency_caps (public_id, banner_id, max_impressions_per_user, "window", created_at, updated_at)
    SELECT $1, id, $3, $4, $5, $6 FROM banners WHERE public_id = $2
    RETURNING banner_id
"""
DELETE: Final = "DELETE FROM frequency_caps WHERE public_id = $1 RETURNING banner_id"


class OwnedCap(msgspec.Struct, frozen=True):
    """A cap, and the account that its banner belongs to."""

    cap: FrequencyCap
    owner_id: UUID | None


async def find(connection: Connection, scope: Scope, cap_id: UUID) -> FrequencyCap:
    """Read a cap; one of another account's banner is not there."""
    return (await _owned(connection, scope, cap_id)).cap


async def find_locked(write: CatalogWrite, scope: Scope, cap_id: UUID) -> OwnedCap:
    """Read a cap to remove it, in the state that the client knows, with its banner locked before it."""
    found = await _owned(write.connection, scope, cap_id)
    await banners.find_parent_locked(write, scope, found.cap.banner_id)
    locked = await _owned(write.connection, scope, cap_id, "FOR UPDATE OF it")
    write.precondition.check(locked.cap)
    return locked


async def listed(connection: Connection, scope: Scope, banner_id: UUID | None) -> list[FrequencyCap]:
    """Read the caps of a scope, of one banner where it is named, in the order in which they were made."""
    filters = Filters()
    filters.add_given("banner.public_id = {}", banner_id)
    filters.add_given("owner.public_id = {}", scope.account_id)
    statement = CAPS.format(filters=filters.sql) + f" ORDER BY it.id LIMIT {LISTED_MAX:d}"
    return [_cap(row).cap for row in await connection.fetch(statement, *filters.values)]


async def insert(write: CatalogWrite, banner: Banner, cap: FrequencyCap) -> None:
    """Add a cap to a banner that is locked."""
    with _window_may_be_taken(cap):
        key: int = await write.connection.fetchval(
            INSERT,
            cap.id,
            cap.banner_id,
            cap.max_impressions_per_user,
            cap.window,
            cap.created_at,
            cap.updated_at,
        )
    write.touch(IndexedNoun.BANNER, key)
    write.record_creation(_about(cap, banner.advertiser_id), cap)


async def delete(write: CatalogWrite, locked: OwnedCap) -> None:
    """Remove a cap that was read with a lock before."""
    write.touch(IndexedNoun.BANNER, await write.connection.fetchval(DELETE, locked.cap.id))
    write.record_deletion(_about(locked.cap, locked.owner_id), locked.cap)


async def _owned(connection: Connection, scope: Scope, cap_id: UUID, lock: str = "") -> OwnedCap:
    filters = Filters()
    filters.add("it.public_id = {}", cap_id)
    filters.add_given("owner.public_id = {}", scope.account_id)
    row = await connection.fetchrow(CAPS.format(filters=filters.sql) + lock, *filters.values)
    if row is None:
        raise FrequencyCapNotFoundError("There is no frequency cap with this id.")
    return _cap(row)


def _cap(row: Record) -> OwnedCap:
    fields = dict(row)
    owner_id: UUID | None = fields.pop("owner_id")
    return OwnedCap(msgspec.convert(fields, FrequencyCap), owner_id)


def _about(cap: FrequencyCap, owner_id: UUID | None) -> AuditSubject:
    return AuditSubject("frequency_cap", str(cap.id), owner_id)


@contextmanager
def _window_may_be_taken(cap: FrequencyCap) -> Generator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name != ONE_A_WINDOW:
            raise
        raise FrequencyCapExistsError(
            f"The ad has a cap for the window {cap.window} already. Remove it first."
        ) from error
