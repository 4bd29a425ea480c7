"""SQL of the daily partitions of the auctions: making and dropping them."""

from collections.abc import Collection
from datetime import date, datetime
from typing import Final

from adloom.events.tables.partition_store import drop_day, find_missing_days
from adloom.runtime.postgres import Connection, Pool

SCHEMA: Final = "auction"
TABLE: Final = "auctions"

ENSURE_DAY: Final = "SELECT ensure_auction_day(day) FROM unnest($1::date[]) AS day"
# One worker drops at a time, and waits only a moment for a table; it tries again later.
BEGIN_DROPPING: Final = """
    SELECT pg_try_advisory_lock(x'AD11'::integer, 4) AND set_config('lock_timeout', '3s', false) IS NOT NULL
"""
# Days whose dropping has begun come first, then the oldest.
OLD_DAYS: Final = """
    SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day
      FROM pg_class
      LEFT JOIN pg_inherits ON inhrelid = pg_class.oid AND NOT inhdetachpending
     WHERE relnamespace = 'auction'::regnamespace AND relkind = 'r' AND relname ~ '^auctions_[0-9]{8}$'
       AND (inhrelid IS NULL
            OR to_date(right(relname, 8), 'YYYYMMDD')
               < least($1::date, (now() AT TIME ZONE 'UTC')::date - $2::integer))
     ORDER BY inhrelid IS NOT NULL, day
     LIMIT $3
"""
# Before the auctions themselves, so that it is retried until both are gone.
FORGET_HOURS: Final = """
    DELETE FROM auction.hours
     WHERE hour >= $1::date::timestamp AT TIME ZONE 'UTC' AND hour < ($1::date + 1)::timestamp AT TIME ZONE 'UTC'
"""


async def ensure_auction_days(connection: Connection, days: Collection[date]) -> int:
    """Make the missing days; return how many."""
    missing = await find_missing_days(connection, SCHEMA, days, [TABLE])
    if missing:
        await connection.execute(ENSURE_DAY, missing)
    return len(missing)


class AuctionPartitions:
    """The daily partitions of the auctions."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ensure(self, days: Collection[date]) -> int:
        async with self._pool.acquire() as connection:
            return sum([await ensure_auction_days(connection, [day]) for day in days])

    async def drop_old(
        self, *, before: date, kept_days: int, written_before: datetime, count_max: int
    ) -> list[date]:
        """Drop the oldest days, if the database's clock agrees that they are old; return which.

        It does not matter when they were written: an auction that comes after its retention is skipped.
        """
        del written_before
        async with self._pool.acquire() as connection:
            if not await connection.fetchval(BEGIN_DROPPING):
                return []
            days = [row["day"] for row in await connection.fetch(OLD_DAYS, before, kept_days, count_max)]
            for day in days:
                await connection.execute(FORGET_HOURS, day)
                await drop_day(connection, SCHEMA, TABLE, day)
        return days

    async def forget_erased(self, before: datetime) -> int:
        """Forget nobody: the event tables do that, whose rows may come later than ours."""
        del before
        return 0
