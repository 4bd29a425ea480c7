"""SQL of rebuilding the event tables: a schema beside the one in use is filled, and swapped in.

Everything happens on one connection; its lock keeps a second rebuild out and ends with it.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from adloom.events.rebuild.log_scanner import IdRun
from adloom.events.tables.apply_batch import COUNTED_DEVICES, KINDS
from adloom.events.tables.partition_store import compute_day_start, describe_event_tables, ensure_days
from adloom.runtime.postgres import Connection, parse_row_count, reset_after_use

IN_USE: Final = "events"
REBUILT: Final = "events_rebuild"
REPLACED: Final = "events_old"
CONVERSIONS: Final = "conversions"
TABLES: Final = (*KINDS, CONVERSIONS, "event_counts", "event_days")

PREPARE_SESSION: Final = """
    SELECT set_config('client_connection_check_interval', '2s', false),
           set_config('synchronous_commit', 'off', false),
           set_config('timezone', 'UTC', false)
"""
# Only rebuilds take this lock.
TAKE_LOCK: Final = "SELECT pg_try_advisory_lock(x'AD11'::integer, 1)"
# Views depend on tables, not on names, so they would go with the old ones. Unknown tables would, too.
IN_THE_WAY: Final = """
    SELECT DISTINCT format('the view %I.%I', view_schema.nspname, view.relname) AS what
      FROM pg_depend
      JOIN pg_rewrite AS rule ON rule.oid = objid AND classid = 'pg_rewrite'::regclass
      JOIN pg_class AS view ON view.oid = rule.ev_class
      JOIN pg_namespace AS view_schema ON view_schema.oid = view.relnamespace
      JOIN pg_class AS source ON source.oid = refobjid AND refclassid = 'pg_class'::regclass
     WHERE source.relnamespace = $1::text::regnamespace AND view.oid <> source.oid
    UNION ALL
    SELECT format('the table %I.%I', $1::text, relname) FROM pg_class
     WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p', 'f', 'm')
       AND NOT relispartition AND relname <> ALL ($2::text[])
"""
# Table by table: all at once, years of days would need more locks than there are.
TABLES_OF: Final = """
    SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = $1::text AND relkind IN ('r', 'p') ORDER BY relispartition DESC, relname
"""
CREATE: Final = """
    CREATE SCHEMA events_rebuild;
    CREATE TABLE events_rebuild.banner_impressions (LIKE events.banner_impressions INCLUDING ALL)
        PARTITION BY RANGE (occurred_at);
    CREATE TABLE events_rebuild.banner_clicks (LIKE events.banner_clicks INCLUDING ALL)
        PARTITION BY RANGE (occurred_at);
    CREATE TABLE events_rebuild.conversions (LIKE events.conversions INCLUDING ALL);
    CREATE TABLE events_rebuild.event_counts (LIKE events.event_counts INCLUDING ALL);
    CREATE TABLE events_rebuild.event_days (LIKE events.event_days INCLUDING ALL);
    CREATE TEMPORARY TABLE kept_entries (kept_ms bigint, first_seq bigint, last_seq bigint);
"""
# Copied rows keep their numbers, so new ones begin after them; a few that other connections have taken may come twice.
NUMBER_ON: Final = """
    SELECT setval(pg_get_serial_sequence($2::text, 'id'), nextval(pg_get_serial_sequence($1::text, 'id')))
"""
# Permissions that an operator has granted stay.
GRANTS: Final = """
    SELECT format('GRANT %s ON %s TO %s', privilege_type, what, coalesce(nullif(grantee, 0)::regrole::text, 'PUBLIC'))
      FROM (
          SELECT format('SCHEMA %I', $2::text), nspowner, nspacl FROM pg_namespace WHERE nspname = $1::text
          UNION ALL
          SELECT format('%I.%I', $2::text, relname), relowner, relacl FROM pg_class
           WHERE relnamespace = $1::text::regnamespace AND relname = ANY ($3::text[])
      ) AS thing (what, owner, acl), aclexplode(acl)
     WHERE grantee <> owner
"""
COLUMNS: Final = """
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
     WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
"""
DAYS: Final = """
    SELECT parent.relname AS kind, partition.relname AS name, to_date(right(partition.relname, 8), 'YYYYMMDD') AS day
      FROM pg_inherits
      JOIN pg_class AS parent ON parent.oid = inhparent
      JOIN pg_class AS partition ON partition.oid = inhrelid
     WHERE parent.relnamespace = $1::text::regnamespace AND parent.relname = ANY ($2::text[]) AND NOT inhdetachpending
     ORDER BY day, kind
"""
# Rows of entries before the first; and up to the last, rows whose entry the log does not have any more, or would
# not be applied again because the banner or placement is gone.
COPY: Final = """
    INSERT INTO events_rebuild.{name} ({columns})
    SELECT {columns} FROM events.{name} AS it
      LEFT JOIN (SELECT id AS known_banner FROM banners) AS banner ON known_banner = it.banner_id
      LEFT JOIN (SELECT id AS known_placement FROM placements_ever) AS place ON known_placement = it.placement_id
      LEFT JOIN pg_temp.kept_entries AS kept
        ON kept_ms = it.entry_ms AND it.entry_seq BETWEEN first_seq AND last_seq
     WHERE (entry_ms, entry_seq) < ($1, $2)
        OR (entry_ms, entry_seq) <= ($3, $4)
           AND (kept_ms IS NULL OR known_banner IS NULL OR known_placement IS NULL)
"""
# Rows of entries that the log had when it was scanned, and has trimmed since.
COPY_FORGOTTEN: Final = """
    INSERT INTO events_rebuild.{name} ({columns})
    SELECT {columns} FROM events.{name} AS it
     WHERE (entry_ms, entry_seq) >= ($1, $2) AND (entry_ms, entry_seq) < ($3, $4)
       AND EXISTS (SELECT FROM banners WHERE id = it.banner_id)
       AND EXISTS (SELECT FROM placements_ever WHERE id = it.placement_id)
       AND EXISTS (
           SELECT FROM pg_temp.kept_entries
            WHERE kept_ms = it.entry_ms AND it.entry_seq BETWEEN first_seq AND last_seq
       )
"""
COUNT_ROWS: Final = """
    INSERT INTO events_rebuild.event_counts (
        hour, banner_id, placement_id, campaign_id, country_code, device_type,
        impressions, clicks, invalid_impressions, invalid_clicks, unbound_impressions, unbound_clicks
    )
    SELECT date_trunc('hour', occurred_at, 'UTC'), banner_id, placement_id, campaign_id, country_code,
           CASE WHEN device_type = ANY ($1::text[]) THEN device_type END,
           count(*) FILTER (WHERE is_impression AND NOT is_unbound),
           count(*) FILTER (WHERE NOT is_impression AND NOT is_unbound),
           count(*) FILTER (WHERE is_impression AND NOT is_unbound AND NOT is_valid),
           count(*) FILTER (WHERE NOT is_impression AND NOT is_unbound AND NOT is_valid),
           count(*) FILTER (WHERE is_impression AND is_unbound),
           count(*) FILTER (WHERE NOT is_impression AND is_unbound)
      FROM (
          SELECT occurred_at, banner_id, placement_id, campaign_id, country_code, device_type, is_valid, marks,
                 true AS is_impression FROM events_rebuild.banner_impressions
          UNION ALL
          SELECT occurred_at, banner_id, placement_id, campaign_id, country_code, device_type, is_valid, marks,
                 false FROM events_rebuild.banner_clicks
      ) AS event, LATERAL (SELECT coalesce(marks @> '{unbound}', false)) AS it (is_unbound)
     WHERE (marks @> '{not_assigned}') IS NOT TRUE
     GROUP BY 1, 2, 3, 4, 5, 6
"""
# Every conversion has a day with partitions; of others the counts are copied.
COUNT_CONVERSIONS: Final = """
    INSERT INTO events_rebuild.event_counts AS it (
        hour, banner_id, placement_id, campaign_id, country_code, device_type, conversions, conversion_micros
    )
    SELECT date_trunc('hour', occurred_at, 'UTC'), banner_id, placement_id, campaign_id, country_code, device_type,
           count(*), coalesce(sum(value_micros) FILTER (WHERE (marks @> '{other_currency}') IS NOT TRUE), 0)
      FROM events_rebuild.conversions
     WHERE is_counted
     GROUP BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (hour, banner_id, placement_id, campaign_id, country_code, device_type) DO UPDATE
       SET conversions = EXCLUDED.conversions, conversion_micros = EXCLUDED.conversion_micros
"""
COUNT_DAYS: Final = """
    INSERT INTO events_rebuild.event_days (day, events, last_entry_ms)
    SELECT day, count(*), max(entry_ms)
      FROM (
          SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, entry_ms FROM events_rebuild.banner_impressions
          UNION ALL
          SELECT (occurred_at AT TIME ZONE 'UTC')::date, entry_ms FROM events_rebuild.banner_clicks
      ) AS event
     GROUP BY day
"""
# An event from a spool may have occurred long before its entry.
WRITTEN_SINCE: Final = "SELECT min(day) FROM events.event_days WHERE last_entry_ms >= $1"
# Counts are all that is left of days whose rows are gone.
COPY_COUNTS: Final = """
    INSERT INTO events_rebuild.event_counts
    SELECT * FROM events.event_counts
     WHERE hour >= $1 AND hour < $2 AND (hour AT TIME ZONE 'UTC')::date <> ALL ($3::date[])
"""
COPY_DAYS: Final = """
    INSERT INTO events_rebuild.event_days
    SELECT * FROM events.event_days
     WHERE day >= ($1 AT TIME ZONE 'UTC')::date AND day < ($2 AT TIME ZONE 'UTC')::date AND day <> ALL ($3::date[])
"""
# A day with other figures than before must be rolled up again; also one that has no rows any more.
CORRECT_DAYS: Final = """
    WITH differing AS (
        SELECT (hour AT TIME ZONE 'UTC')::date AS day FROM (
            (SELECT * FROM events.event_counts WHERE hour >= $1 AND hour < $2
             EXCEPT ALL SELECT * FROM events_rebuild.event_counts WHERE hour >= $1 AND hour < $2)
            UNION ALL
            (SELECT * FROM events_rebuild.event_counts WHERE hour >= $1 AND hour < $2
             EXCEPT ALL SELECT * FROM events.event_counts WHERE hour >= $1 AND hour < $2)
        ) AS count
        GROUP BY 1
    ), corrected AS (
        SELECT day, 0 AS events, coalesce(before.corrections, 0) + (differing.day IS NOT NULL)::integer AS corrections,
               coalesce(before.last_entry_ms, 0) AS last_entry_ms
          FROM events.event_days AS before FULL JOIN differing USING (day)
         WHERE day >= ($1 AT TIME ZONE 'UTC')::date AND day < ($2 AT TIME ZONE 'UTC')::date
    ), noted AS (
        INSERT INTO events_rebuild.event_days AS it (day, events, corrections, last_entry_ms) TABLE corrected
        ON CONFLICT (day) DO UPDATE
           SET corrections = EXCLUDED.corrections,
               last_entry_ms = greatest(it.last_entry_ms, EXCLUDED.last_entry_ms)
    )
    SELECT count(*) FROM differing
"""

ROWS_OF: Final = """
    SELECT entry_ms, entry_seq FROM events.{kind}
     WHERE occurred_at >= $1 AND (entry_ms, entry_seq) IN (SELECT * FROM unnest($2::bigint[], $3::bigint[]))
"""
# Nobody else writes into the tables in use while the cursor is locked.
LOCK_CURSOR: Final = """
    SELECT entry_id, set_config('synchronous_commit', 'on', true)
      FROM projection_cursors WHERE projection = $1 FOR UPDATE
"""
EVENTS: Final = "SELECT coalesce(sum(events), 0)::bigint FROM {schema}.event_days"
# The log does not know what did not fit a budget. Nobody marks a click between this and the swap.
LOCK_CLICKS: Final = "LOCK TABLE ONLY events.banner_clicks IN SHARE MODE"
KEEP_OVER_BUDGET: Final = """
    UPDATE events_rebuild.banner_clicks AS it SET marks = array_append(coalesce(it.marks, '{}'), 'over_budget')
      FROM events.banner_clicks AS before
     WHERE before.marks @> '{over_budget}' AND it.occurred_at = before.occurred_at
       AND it.request_id = before.request_id AND it.slot = before.slot AND it.request_id IS NOT NULL
       AND (it.marks && '{second_impression,second_click}') IS NOT TRUE
       AND it.is_valid AND (it.marks @> '{over_budget}') IS NOT TRUE
"""
EXCHANGE: Final = """
    ALTER SCHEMA events RENAME TO events_old;
    ALTER SCHEMA events_rebuild RENAME TO events;
"""


class EntryPosition(NamedTuple):
    """The position of an entry in the order of the log."""

    entry_ms: int
    entry_seq: int

    @property
    def entry_id(self) -> str:
        return f"{self.entry_ms}-{self.entry_seq}"

    @property
    def next(self) -> "EntryPosition":
        return EntryPosition(self.entry_ms, self.entry_seq + 1)

    def advance(self, span: timedelta) -> "EntryPosition":
        return EntryPosition(self.entry_ms + span // timedelta(milliseconds=1), 0)


class DayPartition(msgspec.Struct, frozen=True):
    """One day of impressions or clicks."""

    kind: str
    name: str
    day: date


_ALL_CONVERSIONS: Final = DayPartition(CONVERSIONS, CONVERSIONS, date.min)  # They are in one table.


async def take_lock(connection: Connection) -> bool:
    """Prepare the connection and take the lock of rebuilds; False if another has it."""
    reset_after_use(connection)
    await connection.execute(PREPARE_SESSION)
    return await connection.fetchval(TAKE_LOCK)


async def read_server_time(connection: Connection) -> datetime:
    return await connection.fetchval("SELECT now()")


async def find_dependents(connection: Connection) -> Sequence[str]:
    """Return what depends on the tables in use and is not ours: it would be lost with them."""
    return [row["what"] for row in await connection.fetch(IN_THE_WAY, IN_USE, TABLES)]


async def drop_schema(connection: Connection, schema: str) -> None:
    for row in await connection.fetch(TABLES_OF, schema):
        await connection.execute(f"DROP TABLE IF EXISTS {row[0]}")
    await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


async def create_schema(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute("DROP TABLE IF EXISTS pg_temp.kept_entries")
        await connection.execute(CREATE)
        for kind in KINDS:
            await connection.execute(NUMBER_ON, f"{IN_USE}.{kind}", f"{REBUILT}.{kind}")
        for row in await connection.fetch(GRANTS, IN_USE, REBUILT, TABLES):
            await connection.execute(row[0])


async def add_kept_entries(connection: Connection, runs: Sequence[IdRun]) -> None:
    await connection.copy_records_to_table("kept_entries", schema_name="pg_temp", records=runs)


async def list_partitions(connection: Connection, schema: str) -> list[DayPartition]:
    rows = await connection.fetch(DAYS, schema, KINDS)
    return [DayPartition(row["kind"], row["name"], row["day"]) for row in rows]


async def copy(
    connection: Connection, partition: DayPartition, *, before: EntryPosition, until: EntryPosition
) -> int:
    """Copy the rows of a day that cannot be built again; return how many."""
    await ensure_days(connection, describe_event_tables(REBUILT), [partition.day])
    return await _copy_rows(connection, COPY, partition, (*before, *until))


async def copy_forgotten(
    connection: Connection, partition: DayPartition, *, first: EntryPosition, before: EntryPosition
) -> int:
    """Copy the rows of a day whose entries were trimmed since they were noted; return how many."""
    return await _copy_rows(connection, COPY_FORGOTTEN, partition, (*first, *before))


async def copy_conversions(connection: Connection, *, before: EntryPosition, until: EntryPosition) -> int:
    """Copy the conversions that cannot be built again; return how many."""
    return await _copy_rows(connection, COPY, _ALL_CONVERSIONS, (*before, *until))


async def copy_forgotten_conversions(
    connection: Connection, *, first: EntryPosition, before: EntryPosition
) -> int:
    """Copy the conversions whose entries were trimmed since they were noted; return how many."""
    return await _copy_rows(connection, COPY_FORGOTTEN, _ALL_CONVERSIONS, (*first, *before))


async def _copy_rows(
    connection: Connection, statement: str, table: DayPartition, bounds: Sequence[int]
) -> int:
    columns = await connection.fetchval(COLUMNS, f"{IN_USE}.{table.kind}")
    statement = statement.format(name=table.name, columns=columns)
    return parse_row_count(await connection.execute(statement, *bounds))


async def analyze(connection: Connection, table: str) -> None:
    """Refresh the planner's statistics of a table that was just filled."""
    await connection.execute(f"ANALYZE {table}")


async def analyze_all(connection: Connection) -> None:
    for table in TABLES:
        await analyze(connection, f"{REBUILT}.{table}")


async def count_rows(connection: Connection) -> None:
    await connection.execute(COUNT_ROWS, sorted(COUNTED_DEVICES))
    await connection.execute(COUNT_CONVERSIONS)
    await connection.execute(COUNT_DAYS)


async def lock_cursor(connection: Connection, projection: str) -> str:
    """Stop the live projection until the end of the transaction, and return its cursor."""
    return await connection.fetchval(LOCK_CURSOR, projection)


async def find_rows(
    connection: Connection, positions: Sequence[EntryPosition], *, since: date
) -> list[EntryPosition]:
    numbers = [position.entry_ms for position in positions], [position.entry_seq for position in positions]
    found: list[EntryPosition] = []
    for kind in (*KINDS, CONVERSIONS):
        statement = ROWS_OF.format(kind=kind)
        rows = await connection.fetch(statement, compute_day_start(since), *numbers)
        found += [EntryPosition(row["entry_ms"], row["entry_seq"]) for row in rows]
    return sorted(found)


async def find_first_day_written(connection: Connection, first: EntryPosition) -> date | None:
    """Return the first day that an entry, or one after it, has written into."""
    return await connection.fetchval(WRITTEN_SINCE, first.entry_ms)


async def copy_counts(connection: Connection, days: Collection[date], *, first: date, before: date) -> None:
    """Copy the counts of a range of days, except of days that have rows to count."""
    for statement in (COPY_COUNTS, COPY_DAYS):
        await connection.execute(statement, compute_day_start(first), compute_day_start(before), days)


async def correct_days(connection: Connection, *, first: date, before: date) -> int:
    """Mark the days of a range whose counts differ from those in use; return how many."""
    return await connection.fetchval(CORRECT_DAYS, compute_day_start(first), compute_day_start(before))


async def count_events(connection: Connection, schema: str) -> int:
    return await connection.fetchval(EVENTS.format(schema=schema))


async def keep_over_budget(connection: Connection) -> None:
    """Mark the rebuilt clicks that were free because they did not fit a budget."""
    await connection.execute(LOCK_CLICKS)
    await connection.execute(KEEP_OVER_BUDGET)


async def swap_schemas(connection: Connection) -> None:
    await connection.execute(EXCHANGE)
