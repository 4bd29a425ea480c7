"""Delivery sessions, and the campaigns in which each has leases, in PostgreSQL.

A lease is recorded before it is granted. So a worker that takes over knows every campaign in which a dead
process may have left something.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.runtime.postgres import Pool, parse_row_count, raise_if_away

KEPT_AFTER_END: Final = timedelta(days=1)

OPEN: Final = "SELECT session FROM brain_sessions WHERE ended_at IS NULL"
OVER: Final = """
    SELECT session, EXISTS (SELECT FROM brain_leases AS lease WHERE lease.session = it.session) AS has_leases
      FROM brain_sessions AS it WHERE ended_at IS NOT NULL
"""
NOTE_SESSIONS: Final = """
    INSERT INTO brain_sessions (session, process, opened_at)
    SELECT session, process, $3 FROM unnest($1::bigint[], $2::text[]) AS noted (session, process)
    ON CONFLICT (session) DO NOTHING
"""
NOTE_LEASES: Final = """
    INSERT INTO brain_leases (session, key) SELECT * FROM unnest($1::bigint[], $2::text[]) ON CONFLICT DO NOTHING
"""
END: Final = """
    INSERT INTO brain_sessions (session, process, opened_at, ended_at) VALUES ($1, $2, $3, $3)
    ON CONFLICT (session) DO UPDATE SET ended_at = EXCLUDED.ended_at
"""
LEASES: Final = "SELECT key FROM brain_leases WHERE session = $1 ORDER BY key LIMIT $2"
FORGET_LEASES: Final = "DELETE FROM brain_leases WHERE session = $1 AND key = ANY ($2::text[])"
FORGET_OVER: Final = """
    DELETE FROM brain_sessions AS it
     WHERE ended_at < $1 AND NOT EXISTS (SELECT FROM brain_leases AS lease WHERE lease.session = it.session)
"""
COUNT_LEASES: Final = "SELECT count(*) FROM brain_leases"


class StoredSessions(msgspec.Struct, frozen=True, kw_only=True):
    """Open sessions, ended ones, ended ones that still have leases, and the number of leases."""

    open: list[int]
    over: list[int]
    unsettled: list[int]
    leases: int


class SessionStore:
    """UnavailableError when PostgreSQL is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load(self) -> StoredSessions:
        with raise_if_away("The sessions are not known"):
            open_ones = await self._pool.fetch(OPEN)
            over = await self._pool.fetch(OVER)
            leases = await self._pool.fetchval(COUNT_LEASES)
        return StoredSessions(
            open=[row["session"] for row in open_ones],
            over=[row["session"] for row in over],
            unsettled=[row["session"] for row in over if row["has_leases"]],
            leases=leases,
        )

    async def record(
        self, sessions: Mapping[int, str], leases: Sequence[tuple[int, str]], *, now: datetime
    ) -> int:
        """Record sessions and the campaigns that they are about to lease; return how many leases are new."""
        ordered = sorted(set(leases))
        with raise_if_away("The sessions are not known"):
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(NOTE_SESSIONS, list(sessions), list(sessions.values()), now)
                status = await connection.execute(
                    NOTE_LEASES, [session for session, _ in ordered], [key for _, key in ordered]
                )
        return parse_row_count(status)

    async def record_end(self, session: int, process: str, *, now: datetime) -> None:
        """Also deletes sessions that ended long ago."""
        with raise_if_away("The sessions are not known"):
            await self._pool.execute(END, session, process, now)
            await self._pool.execute(FORGET_OVER, now - KEPT_AFTER_END)

    async def list_leases(self, session: int, *, count_max: int) -> list[str]:
        with raise_if_away("The sessions are not known"):
            return [row["key"] for row in await self._pool.fetch(LEASES, session, count_max)]

    async def delete_leases(self, session: int, keys: Sequence[str]) -> None:
        with raise_if_away("The sessions are not known"):
            await self._pool.execute(FORGET_LEASES, session, keys)
