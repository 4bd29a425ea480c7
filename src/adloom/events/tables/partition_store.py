"""SQL of the daily partitions of the event tables: which exist, making and dropping them."""

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time
from typing import Final

from adloom.core.errors import UnavailableError
from adloom.events.tables.apply_batch import KINDS
from adloom.runtime.postgres import Connection, Pool

DETACH_SECONDS_MAX: Final = 60.0

# A day that is being dropped still exists by name, but takes no rows.
NOT_ATTACHED: Final = """
    SELECT DISTINCT day, partition.oid IS NULL AS is_missing
      FROM unnest($2::date[]) AS day
     CROSS JOIN unnest($3::text[]) AS kind
      LEFT JOIN pg_class AS partition
        ON partition.oid = to_regclass(format('%I.%I', $1::text, kind || to_char(day, '_YYYYMMDD')))
      LEFT JOIN pg_inherits ON inhrelid = partition.oid AND NOT inhdetachpending
     WHERE inhrelid IS NULL
     ORDER BY day
"""
ENSURE_DAY: Final = "SELECT ensure_event_day($1, day) FROM unnest($2::date[]) AS day"

# One worker drops at a time, and waits only a moment for a table; it tries again later.
BEGIN_DROPPING: Final = """
    SELECT pg_try_advisory_lock(x'AD11'::integer, 2) AND set_config('lock_timeout', '3s', false) IS NOT NULL
"""
# Days whose dropping has begun come first, then the oldest. A day that the log has written into recently is
# kept, however old it is: its events may still be repeated.
OLD_DAYS: Final = """
    SELECT partition.day FROM (
        SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day, bool_and(inhrelid IS NOT NULL) AS is_attached
          FROM pg_class
          LEFT JOIN pg_inherits ON inhrelid = pg_class.oid AND NOT inhdetachpending
         WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'
           AND relname ~ '^banner_(impressions|clicks)_[0-9]{{8}}$'
         GROUP BY 1
    ) AS partition
      LEFT JOIN {schema}.event_days AS written ON written.day = partition.day
     WHERE NOT is_attached
        OR (partition.day < least($2::date, (now() AT TIME ZONE 'UTC')::date - $3::integer)
            AND coalesce(written.last_entry_ms, 0) < $4)
     ORDER BY is_attached, partition.day
     LIMIT $5
"""
STATE: Final = """
    SELECT inhdetachpending FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
     WHERE pg_class.oid = to_regclass($1)
"""
FORGET_ERASED: Final = "DELETE FROM erased_users WHERE erased_at < $1"


def day_start(day: date) -> datetime:
    """Return the first moment of a day in UTC."""
    return datetime.combine(day, time(), UTC)


async def find_missing_days(
    connection: Connection, schema: str, days: Collection[date], kinds: Sequence[str]
) -> list[date]:
    """Return the days that are missing; UnavailableError if one is being dropped."""
    absent = await connection.fetch(NOT_ATTACHED, schema, list(days), kinds)
    missing = [row["day"] for row in absent if row["is_missing"]]
    if len(missing) < len(absent):
        raise UnavailableError(
            f"A day is just being dropped: {', '.join(str(row['day']) for row in absent)}."
        )
    return missing


async def drop_day(connection: Connection, schema: str, kind: str, day: date) -> None:
    """Drop a day of a table; it is detached first, while others read and write."""
    parent, partition = f"{schema}.{kind}", f"{schema}.{kind}_{day:%Y%m%d}"
    state = await connection.fetchrow(STATE, partition)
    if state is None:
        return
    if state["inhdetachpending"] is not None:
        how = "FINALIZE" if state["inhdetachpending"] else "CONCURRENTLY"
        detach = f"ALTER TABLE {parent} DETACH PARTITION {partition} {how}"
        await connection.execute(detach, timeout=DETACH_SECONDS_MAX)
    await connection.execute(f"DROP TABLE {partition}", timeout=DETACH_SECONDS_MAX)


async def ensure_days(connection: Connection, schema: str, days: Collection[date]) -> int:
    """Make the missing days; return how many."""
    missing = await find_missing_days(connection, schema, days, KINDS)
    if missing:
        await connection.execute(ENSURE_DAY, schema, missing)
    return len(missing)


class EventPartitions:
    """The daily partitions of the event tables in a schema."""

    def __init__(self, pool: Pool, *, schema: str = "events") -> None:
        self._pool = pool
        self._schema = schema
        self._old_days = OLD_DAYS.format(schema=schema)

    async def ensure(self, days: Collection[date]) -> int:
        """Make the missing days, each in its own transaction; return how many."""
        async with self._pool.acquire() as connection:
            return sum([await ensure_days(connection, self._schema, [day]) for day in days])

    async def drop_old(
        self, *, before: date, kept_days: int, written_before: datetime, count_max: int
    ) -> list[date]:
        """Drop the oldest days, if the database's clock agrees that they are old; return which."""
        written_before_ms = int(written_before.timestamp() * 1000)
        async with self._pool.acquire() as connection:
            if not await connection.fetchval(BEGIN_DROPPING):
                return []
            rows = await connection.fetch(
                self._old_days, self._schema, before, kept_days, written_before_ms, count_max
            )
            for row in rows:
                for kind in KINDS:
                    await drop_day(connection, self._schema, kind, row["day"])
        return [row["day"] for row in rows]

    async def forget_erased(self, before: datetime) -> int:
        """Forget users who were erased before a time after which no event of theirs is on its way."""
        return int((await self._pool.execute(FORGET_ERASED, before)).rpartition(" ")[2])
