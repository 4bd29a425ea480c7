"""What all projections in PostgreSQL share: the row of their cursor, and what the errors of their database mean."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from adloom.core.errors import UnavailableError
from adloom.core.ids import digest_user
from adloom.events.log.event import BEGINNING
from adloom.events.ports import CursorMovedError, PoisonEntryError
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

ENSURE_CURSOR: Final = """
    INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, $2) ON CONFLICT (projection) DO NOTHING
"""
CURSOR: Final = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
CURSORS: Final = "SELECT projection, entry_id FROM projection_cursors ORDER BY projection"
# Settings of a transaction. Partitions that were empty a moment ago have no statistics, and no plan may read
# a day from end to end for each batch.
BY_INDEX: Final = "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
BY_SAME_INDEX: Final = f"{BY_INDEX}, set_config('plan_cache_mode', 'force_generic_plan', true)"
# The lock makes two workers take turns, so that they cannot deadlock. An erasure
# takes it too: it must not come between a batch that has read `erased_users` and its rows.
LOCK_CURSOR: Final = f"""
    {BY_SAME_INDEX}, entry_id FROM projection_cursors WHERE projection = $1 FOR UPDATE
"""
MOVE_CURSOR: Final = """
    UPDATE projection_cursors SET entry_id = $3, moved_at = now() WHERE projection = $1 AND entry_id = $2
    RETURNING 1
"""
ERASED_USERS: Final = "SELECT user_digest, erased_at FROM erased_users WHERE user_digest = ANY ($1::bytea[])"
# The server's refusal of a value, and the driver's.
VALUE_ERRORS: Final = (asyncpg.DataError, ValueError, OverflowError)
ROW_ERRORS: Final = (*VALUE_ERRORS, asyncpg.IntegrityConstraintViolationError)


async def read_cursor(pool: Pool, projection: str) -> str:
    """Return the last entry that was applied; the row is made at the first call. UnavailableError when away."""
    with translate_database_errors("The database does not return the cursor"):
        # Followers ask often, so a row that is there is not written.
        cursor: str | None = await pool.fetchval(CURSOR, projection)
        if cursor is None:
            await ensure_cursor(pool, projection)
            cursor = await pool.fetchval(CURSOR, projection)
    assert cursor is not None
    return cursor


async def ensure_cursor(connection: "Pool | Connection", projection: str) -> None:
    """Make the cursor's row, at the beginning of the log."""
    await connection.execute(ENSURE_CURSOR, projection, BEGINNING)


async def read_all_cursors(connection: "Pool | Connection") -> dict[str, str]:
    """Return the cursor of every projection in the database, also of one that is being rebuilt."""
    with translate_database_errors("The database does not return the cursors"):
        return {row["projection"]: row["entry_id"] for row in await connection.fetch(CURSORS)}


async def lock_cursor(connection: Connection, projection: str, *, after: str) -> None:
    """Lock the cursor and plan by index until the end of the transaction; CursorMovedError if it is not at `after`."""
    row = await connection.fetchrow(LOCK_CURSOR, projection)
    if row is None or row["entry_id"] != after:
        raise CursorMovedError


async def move_cursor(connection: "Pool | Connection", projection: str, *, after: str, cursor: str) -> None:
    """Move the cursor; CursorMovedError if it is not at `after`."""
    if await connection.fetchval(MOVE_CURSOR, projection, after, cursor) is None:
        raise CursorMovedError


async def find_erased_users(connection: Connection, users: Collection[UUID]) -> dict[UUID, datetime]:
    """Return those of some users who were erased, and when."""
    by_digest = {digest_user(user): user for user in users}
    rows = await connection.fetch(ERASED_USERS, list(by_digest)) if users else ()
    return {by_digest[row["user_digest"]]: row["erased_at"] for row in rows}


@contextmanager
def translate_database_errors(
    message: str, *, poison: tuple[type[Exception], ...] = VALUE_ERRORS
) -> Generator[None]:
    """Raise PoisonEntryError for a value that no table takes, and UnavailableError when the server is away."""
    try:
        yield
    except poison as error:
        if isinstance(error, asyncpg.CheckViolationError) and error.constraint_name is None:
            # No rule is broken: the day's partition was dropped while we wrote into it.
            raise UnavailableError(f"A day of the tables is not there: {error!r}") from error
        raise PoisonEntryError(repr(error)) from error
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"{message}: {error!r}") from error
