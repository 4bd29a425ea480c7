"""SQL of daily partitions, of the event tables and of the auctions: which exist, making and dropping them."""

from collections.abc import Collection
from datetime import UTC, date, datetime, time
from typing import Final

import msgspec

from adloom.core.errors import UnavailableError
from adloom.events.tables.apply_batch import KINDS
from adloom.runtime.postgres import Connection, Pool, parse_row_count, reset_after_use

DETACH_SECONDS_MAX: Final = 60.0

# A day that is being dropped still exists by name, but takes no rows. Asked with every batch, so with one look into an
# index for each day.
NOT_ATTACHED: Final = """
    SELECT DISTINCT day, partition IS NULL AS is_missing
      FROM unnest($2::date[]) AS day
     CROSS JOIN unnest($3::text[]) AS kind
     CROSS JOIN to_regclass(format('%I.%I', $1::text, kind || to_char(day, '_YYYYMMDD'))) AS partition
     WHERE (SELECT true FROM pg_inherits WHERE inhrelid = partition AND NOT inhdetachpending) IS NULL
     ORDER BY day
"""
# One worker drops at a time, and waits only a moment for a table; it tries again later.
BEGIN_DROPPING: Final = """
    SELECT pg_try_advisory_lock(x'AD11'::integer, $1) AND set_config('lock_timeout', '3s', false) IS NOT NULL
"""
# Days whose dropping has begun come first, then the oldest. A day that the log has written into recently is
# kept, however old it is: its events may still be repeated.
OLD_DAYS: Final = """
    SELECT day FROM (
        SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day, bool_and(inhrelid IS NOT NULL) AS is_attached
          FROM pg_class
          LEFT JOIN pg_inherits ON inhrelid = pg_class.oid AND NOT inhdetachpending
         WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' AND relname ~ $2
         GROUP BY 1
    ) AS partition
     WHERE NOT is_attached
        OR (day < least($3::date, (now() AT TIME ZONE 'UTC')::date - $4::integer)
            AND coalesce(({written_ms}), 0) < $5::bigint)
     ORDER BY is_attached, day
     LIMIT $6
"""
_ENSURE_EVENT_DAYS: Final = "SELECT ensure_event_day('{schema}', day) FROM unnest($1::date[]) AS day"
_LAST_WRITTEN_MS: Final = "SELECT last_entry_ms FROM {schema}.event_days AS it WHERE it.day = partition.day"
_FORGET_CONVERSIONS: Final = """
    DELETE FROM {schema}.conversions
     WHERE occurred_at >= $1::date::timestamp AT TIME ZONE 'UTC'
       AND occurred_at < ($1::date + 1)::timestamp AT TIME ZONE 'UTC'
"""
STATE: Final = """
    SELECT inhdetachpending FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
     WHERE pg_class.oid = to_regclass($1)
"""
FORGET_ERASED: Final = "DELETE FROM erased_users WHERE erased_at < $1"


class PartitionedTables(msgspec.Struct, frozen=True, kw_only=True):
    """Tables of a schema that have the same days; a number names the lock of dropping them."""

    schema: str
    kinds: tuple[str, ...]
    drop_lock: int
    ensure_days: str
    written_ms: str = "0"  # SQL of the log's time of a day's last entry; by default it does not matter.
    forget_day: str | None = (
        None  # SQL that comes before the drop, so that it is retried until both are done.
    )


def describe_event_tables(schema: str) -> PartitionedTables:
    """Describe the event tables of a schema, which a rebuild names otherwise."""
    return PartitionedTables(
        schema=schema,
        kinds=KINDS,
        drop_lock=2,
        ensure_days=_ENSURE_EVENT_DAYS.format(schema=schema),
        written_ms=_LAST_WRITTEN_MS.format(schema=schema),
        forget_day=_FORGET_CONVERSIONS.format(schema=schema),
    )


EVENT_PARTITIONS: Final = describe_event_tables("events")
# It does not matter when they were written: an auction that comes after its retention is skipped.
AUCTION_PARTITIONS: Final = PartitionedTables(
    schema="auction",
    kinds=("auctions",),
    drop_lock=4,
    ensure_days="SELECT ensure_auction_day(day) FROM unnest($1::date[]) AS day",
    forget_day="""
        DELETE FROM auction.hours
         WHERE hour >= $1::date::timestamp AT TIME ZONE 'UTC'
           AND hour < ($1::date + 1)::timestamp AT TIME ZONE 'UTC'
    """,
)


def compute_day_start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def ensure_days(connection: Connection, tables: PartitionedTables, days: Collection[date]) -> int:
    """Make the missing days and return how many; UnavailableError if one of the days is being dropped."""
    absent = await connection.fetch(NOT_ATTACHED, tables.schema, list(days), tables.kinds)
    missing = [row["day"] for row in absent if row["is_missing"]]
    if len(missing) < len(absent):
        raise UnavailableError(
            f"A day is just being dropped: {', '.join(str(row['day']) for row in absent)}."
        )
    if missing:
        await connection.execute(tables.ensure_days, missing)
    return len(missing)


class PartitionStore:
    """The daily partitions of some tables."""

    def __init__(self, pool: Pool, tables: PartitionedTables = EVENT_PARTITIONS) -> None:
        self._pool = pool
        self._tables = tables

    async def ensure(self, days: Collection[date]) -> int:
        """Make the missing days, each in its own transaction; return how many."""
        async with self._pool.acquire() as connection:
            return sum([await ensure_days(connection, self._tables, [day]) for day in days])

    async def drop_old(
        self, *, before: date, kept_days: int, written_before: datetime, count_max: int
    ) -> list[date]:
        """Drop the oldest days, if the database's clock agrees that they are old; return which."""
        tables = self._tables
        names = f"^({'|'.join(tables.kinds)})_[0-9]{{8}}$"
        written_before_ms = int(written_before.timestamp() * 1000)
        async with self._pool.acquire() as connection:
            reset_after_use(connection)
            if not await connection.fetchval(BEGIN_DROPPING, tables.drop_lock):
                return []
            statement = OLD_DAYS.format(written_ms=tables.written_ms)
            rows = await connection.fetch(
                statement, tables.schema, names, before, kept_days, written_before_ms, count_max
            )
            for row in rows:
                if tables.forget_day is not None:
                    await connection.execute(tables.forget_day, row["day"])
                for kind in tables.kinds:
                    await _drop_day(connection, f"{tables.schema}.{kind}", row["day"])
        return [row["day"] for row in rows]

    async def forget_erased(self, before: datetime) -> int:
        """Forget users who were erased before a time after which no event of theirs is on its way."""
        return parse_row_count(await self._pool.execute(FORGET_ERASED, before))


async def _drop_day(connection: Connection, table: str, day: date) -> None:
    """Drop a day of a table; it is detached first, while others read and write."""
    partition = f"{table}_{day:%Y%m%d}"
    state = await connection.fetchrow(STATE, partition)
    if state is None:
        return
    if state["inhdetachpending"] is not None:
        how = "FINALIZE" if state["inhdetachpending"] else "CONCURRENTLY"
        detach = f"ALTER TABLE {table} DETACH PARTITION {partition} {how}"
        await connection.execute(detach, timeout=DETACH_SECONDS_MAX)
    await connection.execute(f"DROP TABLE {partition}", timeout=DETACH_SECONDS_MAX)
