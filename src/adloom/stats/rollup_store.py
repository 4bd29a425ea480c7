"""The SQL of the rollup: a day's rows, batch by batch, into `banner_stats`; and which days need it.

Every statement about a day runs in one transaction with one snapshot (REPEATABLE READ), including the read of
`event_days`. So what is recorded as rolled up is exactly what was read; an event that is counted meanwhile raises
the day's count above it, which makes the day stale again.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

from adloom.core.money import MICROS_PER_PAISA
from adloom.runtime.postgres import Connection, Pool, reset_after_use

# The first half of the advisory lock's key; the other half is the day.
LOCK: Final = 0x_AD10
STATEMENT_SECONDS_MAX: Final = (
    300.0  # A batch takes about a second; waiting for another rollup of the day takes longer.
)
STALE_DAYS_MAX: Final = 400

IMPRESSIONS: Final = "impressions"
CLICKS: Final = "clicks"

# A day that is being dropped still has its table, but is detached from the parent.
_HAS_ROWS: Final = """EXISTS (
    SELECT FROM pg_inherits
     WHERE inhrelid = to_regclass('events.banner_impressions_' || to_char({day}, 'YYYYMMDD')) AND NOT inhdetachpending
)"""
TAKE_TURN = "SELECT pg_advisory_lock($1, $2::date - date '2000-01-01')"
GIVE_TURN = "SELECT pg_advisory_unlock($1, $2::date - date '2000-01-01')"
# A client that vanishes must not hold the lock for ever.
BOUND_IDLING = "SET LOCAL idle_in_transaction_session_timeout = '5min'"
DAY = """
    SELECT coalesce(events, 0) AS events, coalesce(corrections, 0) AS corrections,
           {has_rows} AS has_rows,
           coalesce(pg_relation_size(to_regclass('events.banner_impressions_' || name)) / block_bytes, 0)
               AS impression_blocks,
           coalesce(pg_relation_size(to_regclass('events.banner_clicks_' || name)) / block_bytes, 0) AS click_blocks,
           EXISTS (SELECT FROM banner_stats WHERE stat_date = $1) AS has_statistics,
           coalesce((SELECT (rolled.events, rolled.corrections)
                          = (coalesce(found.events, 0), coalesce(found.corrections, 0))
                       FROM rollup_days AS rolled WHERE rolled.day = $1), false) AS is_fresh
      FROM (SELECT to_char($1::date, 'YYYYMMDD'), current_setting('block_size')::int) AS it (name, block_bytes)
      LEFT JOIN events.event_days AS found ON found.day = $1
""".format(has_rows=_HAS_ROWS.format(day="$1::date"))  # noqa: S608 - our own words
MAKE_STAGE = """
    CREATE TEMPORARY TABLE rollup_stage (
        banner_id           integer NOT NULL,
        placement_id        integer NOT NULL,
        campaign_id         integer,
        impressions         bigint NOT NULL DEFAULT 0,
        clicks              bigint NOT NULL DEFAULT 0,
        invalid_impressions bigint NOT NULL DEFAULT 0,
        invalid_clicks      bigint NOT NULL DEFAULT 0,
        unbound_impressions bigint NOT NULL DEFAULT 0,
        unbound_clicks      bigint NOT NULL DEFAULT 0,
        over_budget_clicks  bigint NOT NULL DEFAULT 0,
        conversions         bigint NOT NULL DEFAULT 0,
        conversion_micros   numeric NOT NULL DEFAULT 0,
        events              bigint NOT NULL DEFAULT 0,
        spend_micros        bigint NOT NULL DEFAULT 0
    ) ON COMMIT DROP
"""
# By physical block and not by hour: every block is read once, and no index is needed. Events that are not assigned
# are read and not counted.
STAGE: Final = {
    kind: f"""
        INSERT INTO pg_temp.rollup_stage
            (banner_id, placement_id, campaign_id, {kind}, invalid_{kind}, unbound_{kind}, events)
        SELECT banner_id, placement_id, campaign_id,
               count(*) FILTER (WHERE is_bound),
               count(*) FILTER (WHERE is_bound AND NOT is_valid),
               count(*) FILTER (WHERE NOT is_bound AND NOT marks @> '{{not_assigned}}'),
               count(*)
          FROM events.banner_{kind},
               LATERAL (SELECT (marks && '{{unbound,not_assigned}}') IS NOT TRUE) AS it (is_bound)
         WHERE occurred_at >= $1 AND occurred_at < $2 AND ctid >= $3 AND ctid < $4
         GROUP BY banner_id, placement_id, campaign_id
    """  # noqa: S608 - our own names
    for kind in (IMPRESSIONS, CLICKS)
}
# By the time of the charge: after the day nothing is added any more.
STAGE_SPEND = """
    INSERT INTO pg_temp.rollup_stage (banner_id, placement_id, campaign_id, over_budget_clicks, spend_micros)
    SELECT banner_id, placement_id, campaign_id, sum(over_budget_clicks), sum(spent_micros)
      FROM spend_hours WHERE hour >= $1 AND hour < $2
     GROUP BY banner_id, placement_id, campaign_id
"""
# From the counts: they say which value counts.
STAGE_CONVERSIONS = """
    INSERT INTO pg_temp.rollup_stage (banner_id, placement_id, campaign_id, conversions, conversion_micros)
    SELECT banner_id, placement_id, campaign_id, sum(conversions), sum(conversion_micros)
      FROM events.event_counts WHERE hour >= $1 AND hour < $2 AND conversions > 0
     GROUP BY banner_id, placement_id, campaign_id
"""
STAGED_EVENTS = "SELECT coalesce(sum(events), 0)::bigint FROM pg_temp.rollup_stage"
# What has only events that are not counted has no statistics.
DROP_UNCOUNTED = """
    DELETE FROM pg_temp.rollup_stage
     WHERE impressions + clicks + unbound_impressions + unbound_clicks + over_budget_clicks + conversions
         + spend_micros = 0
"""
# The planner has no statistics of a table that was just filled.
LOOK_AT_STAGE = "ANALYZE pg_temp.rollup_stage"
FORGET_UNTRUE = """
    DELETE FROM banner_stats AS it
     WHERE it.stat_date = $1 AND NOT EXISTS (
         SELECT FROM pg_temp.rollup_stage AS staged
          WHERE staged.banner_id = it.banner_id AND staged.placement_id = it.placement_id
            AND staged.campaign_id IS NOT DISTINCT FROM it.campaign_id
     )
"""
# Statistics sum micros; the hundredths are for people who read the table.
OVERWRITE = """
    INSERT INTO banner_stats AS it (
        banner_id, placement_id, campaign_id, stat_date, impressions, clicks,
        invalid_impressions, invalid_clicks, unbound_impressions, unbound_clicks, over_budget_clicks,
        conversions, conversion_micros, spend_micros, spend_paisa, created_at, updated_at
    )
    SELECT banner_id, placement_id, campaign_id, $1, sum(impressions), sum(clicks),
           sum(invalid_impressions), sum(invalid_clicks), sum(unbound_impressions), sum(unbound_clicks),
           sum(over_budget_clicks), sum(conversions), sum(conversion_micros), sum(spend_micros),
           div(sum(spend_micros), $3), $2, $2
      FROM pg_temp.rollup_stage
     GROUP BY banner_id, placement_id, campaign_id
    ON CONFLICT (banner_id, placement_id, campaign_id, stat_date) DO UPDATE
       SET impressions = EXCLUDED.impressions, clicks = EXCLUDED.clicks,
           invalid_impressions = EXCLUDED.invalid_impressions, invalid_clicks = EXCLUDED.invalid_clicks,
           unbound_impressions = EXCLUDED.unbound_impressions, unbound_clicks = EXCLUDED.unbound_clicks,
           over_budget_clicks = EXCLUDED.over_budget_clicks,
           conversions = EXCLUDED.conversions, conversion_micros = EXCLUDED.conversion_micros,
           spend_micros = EXCLUDED.spend_micros, spend_paisa = EXCLUDED.spend_paisa,
           updated_at = EXCLUDED.updated_at
     WHERE (it.impressions, it.clicks, it.invalid_impressions, it.invalid_clicks,
            it.unbound_impressions, it.unbound_clicks, it.over_budget_clicks, it.conversions, it.conversion_micros,
            it.spend_micros, it.spend_paisa)
           IS DISTINCT FROM
           (EXCLUDED.impressions, EXCLUDED.clicks, EXCLUDED.invalid_impressions, EXCLUDED.invalid_clicks,
            EXCLUDED.unbound_impressions, EXCLUDED.unbound_clicks, EXCLUDED.over_budget_clicks, EXCLUDED.conversions,
            EXCLUDED.conversion_micros, EXCLUDED.spend_micros,
            EXCLUDED.spend_paisa)
"""
ROWS = "SELECT count(*) FROM banner_stats WHERE stat_date = $1"
NOTE = """
    INSERT INTO rollup_days (day, events, corrections, rolled_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (day) DO UPDATE
       SET events = EXCLUDED.events, corrections = EXCLUDED.corrections, rolled_at = EXCLUDED.rolled_at
"""
STALE = """
    SELECT day, it.events + it.corrections AS version,
           coalesce(rolled.rolled_at <= $2, true) AS is_due
      FROM events.event_days AS it LEFT JOIN rollup_days AS rolled USING (day)
     WHERE day < $1
       AND (rolled.events, rolled.corrections) IS DISTINCT FROM (it.events, it.corrections)
       AND {has_rows}
     ORDER BY day
     LIMIT $3
""".format(has_rows=_HAS_ROWS.format(day="day"))  # noqa: S608 - our own words
DROPPED = """
    SELECT day FROM events.event_days
     WHERE day BETWEEN $1 AND $2 AND events > 0
       AND NOT {has_rows}
     ORDER BY day
""".format(has_rows=_HAS_ROWS.format(day="day"))  # noqa: S608 - our own words


class DayFound(msgspec.Struct, frozen=True, kw_only=True):
    """A day: how many events it has, and how many blocks of rows to read."""

    events: int
    corrections: int
    has_rows: bool
    has_statistics: bool
    is_fresh: bool
    impression_blocks: int
    click_blocks: int

    @property
    def is_dropped(self) -> bool:
        """Whether the day's rows existed and are gone."""
        return not self.has_rows and (self.events > 0 or self.has_statistics)


class StaleDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day whose statistics lack events; one that was rolled up just now is not due yet."""

    day: date
    version: int
    is_due: bool


@asynccontextmanager
async def open_day(pool: Pool, day: date) -> AsyncGenerator[Connection]:
    """Open the transaction of a rollup, after all other rollups of the day."""
    async with pool.acquire() as connection:
        reset_after_use(connection)
        # Before the transaction: inside it, the snapshot would be as old as the wait.
        await connection.execute(TAKE_TURN, LOCK, day, timeout=STATEMENT_SECONDS_MAX)
        try:
            async with connection.transaction(isolation="repeatable_read"):
                await connection.execute(BOUND_IDLING)
                yield connection
        finally:
            # A lost connection has released the lock already.
            if not connection.is_closed():
                await connection.execute(GIVE_TURN, LOCK, day)


async def find_day(connection: Connection, day: date) -> DayFound:
    """Read a day; the first statement of its transaction, so its snapshot holds for all."""
    row = await connection.fetchrow(DAY, day)
    assert row is not None
    return msgspec.convert(dict(row), DayFound)


async def make_stage(connection: Connection) -> None:
    await connection.execute(MAKE_STAGE)


async def stage(connection: Connection, day: date, kind: str, blocks: range) -> None:
    begins, ends = find_bounds(day)
    await connection.execute(
        STAGE[kind], begins, ends, (blocks.start, 0), (blocks.stop, 0), timeout=STATEMENT_SECONDS_MAX
    )


async def stage_events(connection: Connection) -> int:
    """Return how many rows were counted in all."""
    return await connection.fetchval(STAGED_EVENTS, timeout=STATEMENT_SECONDS_MAX)


async def overwrite(connection: Connection, day: date, found: DayFound, *, now: datetime) -> int:
    """Replace the day's statistics by what was staged; return the number of rows."""
    await connection.execute(STAGE_SPEND, *find_bounds(day), timeout=STATEMENT_SECONDS_MAX)
    await connection.execute(STAGE_CONVERSIONS, *find_bounds(day), timeout=STATEMENT_SECONDS_MAX)
    await connection.execute(DROP_UNCOUNTED)
    await connection.execute(LOOK_AT_STAGE)
    await connection.execute(FORGET_UNTRUE, day, timeout=STATEMENT_SECONDS_MAX)
    await connection.execute(OVERWRITE, day, now, MICROS_PER_PAISA, timeout=STATEMENT_SECONDS_MAX)
    await connection.execute(NOTE, day, found.events, found.corrections, now)
    return await connection.fetchval(ROWS, day)


async def read_stale_days(pool: Pool, *, before: date, quiet_since: datetime) -> Sequence[StaleDay]:
    """Return days before a day whose statistics lack events, and whose rows still exist."""
    rows = await pool.fetch(STALE, before, quiet_since, STALE_DAYS_MAX)
    return [msgspec.convert(dict(row), StaleDay) for row in rows]


async def find_dropped_days(pool: Pool, first: date, last: date) -> Sequence[date]:
    """Return the days whose rows were dropped; both bounds are included."""
    return [row["day"] for row in await pool.fetch(DROPPED, first, last)]


def find_bounds(day: date) -> tuple[datetime, datetime]:
    """Return the first moment of a UTC day, and the first after it."""
    begins = datetime.combine(day, time(), UTC)
    return begins, begins + timedelta(days=1)
