"""SQL of rebuilding the frequency counts: sums of the valid impressions of users."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final

from adloom.events.cursor_store import CURSOR
from adloom.events.frequency.projection import SECONDS_AN_HOUR, ShownCount
from adloom.events.log.event import BEGINNING
from adloom.runtime.postgres import Connection

ROWS_A_BATCH: Final = 500

# Before `$1` only the lifetime's bucket is still open, so one sum serves all hours. The newest first: a bucket that
# began with what is older than a lifetime would vanish with it.
SHOWN: Final = """
    SELECT shown.user_id, banner.public_id AS banner_id, shown.last_at, shown.times
      FROM (
          SELECT user_id, banner_id, max(occurred_at) AS last_at, count(*) AS times
            FROM events.banner_impressions
           WHERE user_id IS NOT NULL AND is_valid AND banner_id IN (SELECT banner_id FROM frequency_caps)
           GROUP BY user_id, banner_id,
                 CASE WHEN occurred_at >= $1 THEN date_trunc('hour', occurred_at, 'UTC') END
      ) AS shown
      JOIN banners AS banner ON banner.id = shown.banner_id
     ORDER BY shown.last_at DESC
"""
ERASED_SINCE: Final = "SELECT user_digest FROM erased_users WHERE erased_at >= $1"


async def read_cursor(connection: Connection, projection: str) -> str:
    return await connection.fetchval(CURSOR, projection) or BEGINNING


async def sum_all_shown(connection: Connection, *, live_since: datetime) -> AsyncGenerator[list[ShownCount]]:
    cursor = await connection.cursor(SHOWN, live_since)
    while rows := await cursor.fetch(ROWS_A_BATCH):
        yield [
            ShownCount(
                str(row["user_id"]),
                str(row["banner_id"]),
                int(row["last_at"].timestamp()) // SECONDS_AN_HOUR,
                row["times"],
            )
            for row in rows
        ]


async def find_erased(connection: Connection, moment: datetime) -> set[bytes]:
    """Return the digests of the users who were erased since a time."""
    return {row["user_digest"] for row in await connection.fetch(ERASED_SINCE, moment)}
