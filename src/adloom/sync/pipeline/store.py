"""The SQL of the pipeline: append what was fetched, add it up by day, then by sell page.

Each step is one statement over whole days. It recomputes its result from the stored rows and writes only what differs.
So any step may run twice, late, or after another one failed: the tables end up the same.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.postgres import Connection, Pool, parse_row_count
from adloom.sync.figures import Figures, Ratios, compute_ratios
from adloom.sync.providers.protocol import StatRow
from adloom.sync.words import AD_SOURCES, Level, Platform, Semantics

STATEMENT_SECONDS_MAX: Final = 120.0

COUNTED: Final = Figures.__struct_fields__
RATIOS: Final = Ratios.__struct_fields__
RAW_COLUMNS: Final = (
    *("seller_id", "entity_type", "entity_id", "external_entity_id", "provider", "semantics", "part"),
    *("fetched_at", "date_start", "date_stop", *COUNTED, *RATIOS),
)


class _EntityTable(msgspec.Struct, frozen=True):
    """The table of a level, an entity's own name on its platform, and those of its parents."""

    name: str
    joins: str
    own: str
    above: str = "''"


def _name_entity(table: str, external_id: str) -> str:
    return f"coalesce({table}.{external_id}, {table}.public_id::text)"


_IN_ACCOUNT: Final = "JOIN sync.ad_accounts AS account ON account.id = {}.ad_account_id"
_IN_CAMPAIGN: Final = (
    f"JOIN sync.campaigns AS campaign ON campaign.id = {{}}.campaign_id {_IN_ACCOUNT.format('campaign')}"
)
_CAMPAIGN: Final = _name_entity("campaign", "external_campaign_id")
TABLES: Final = {
    Level.CAMPAIGN: _EntityTable(
        "sync.campaigns", _IN_ACCOUNT.format("entity"), _name_entity("entity", "external_campaign_id")
    ),
    Level.ADSET: _EntityTable(
        "sync.adsets", _IN_CAMPAIGN.format("entity"), _name_entity("entity", "external_adset_id"), _CAMPAIGN
    ),
    Level.AD: _EntityTable(
        "sync.ads",
        f"JOIN sync.adsets AS adset ON adset.id = entity.adset_id {_IN_CAMPAIGN.format('adset')}",
        _name_entity("entity", "external_ad_id"),
        f"{_CAMPAIGN} || ' ' || {_name_entity('adset', 'external_adset_id')}",
    ),
}

ENSURE_MONTHS: Final = "SELECT sync.ensure_month(day) FROM unnest($1::date[]) AS day"
# One lock per day, always taken in the order of the days, so that two syncs cannot deadlock.
LOCK_DAYS: Final = """
    SELECT pg_advisory_xact_lock(hashtextextended(format('sync:%s:%s:%s', $1::uuid, $2::text, day::date), 0))
      FROM generate_series($3::date, $4::date, interval '1 day') AS day
"""


def _write_ratio(of: str, to: str) -> str:
    """Round half up to 4 decimal places (PostgreSQL rounds half away from zero); a ratio to zero is 0."""
    return f"coalesce(round(({of})::numeric / nullif({to}, 0), 4), 0)"


def _join_columns(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name}" for name in names)


_DAILY_FIGURES: Final = (*COUNTED, *RATIOS)
_DAILY_RATIOS: Final = ", ".join(
    (
        _write_ratio("spend * 1000", "impressions"),
        _write_ratio("link_clicks", "impressions"),
        _write_ratio("spend", "link_clicks"),
        _write_ratio("spend", "purchases"),
        _write_ratio("purchase_value", "spend"),
    )
)
WITH_FIGURES: Final = f"""
    SELECT entity_id, stat_date FROM sync.ad_stats_daily
     WHERE seller_id = $1 AND entity_type = $2 AND stat_date BETWEEN $3 AND $4
       AND ({" OR ".join(f"{name} > 0" for name in COUNTED)})
"""  # noqa: S608 - our own names
# The last row of an entity and day decides: a snapshot counts alone, of deltas the last one of each part counts.
# Entities come from their own table, deleted ones too, so that each is one index look-up and no row is read in vain,
# however many were appended. Ids break ties of `fetched_at`.
# An external id may be that of another entity by now: after it was deleted and entered again, or given to another one.
# Of all that were fetched by it for a day, the last one has the figures of that day, so that they count once. Ids of
# Meta are unique; elsewhere they are within their parents. An entity whose raw rows were dropped was fetched before all
# others, by the external id that it has: its daily figures stay, unless another one has rows of that day.
ADD_UP_DAYS: Final = {
    level: f"""
        WITH last AS MATERIALIZED (
            SELECT entity.public_id AS entity_id, day::date AS stat_date, row.*,
                   rank() OVER (
                       PARTITION BY day, row.provider, row.external_entity_id,
                                    CASE WHEN row.provider <> 'meta' THEN {table.above} END
                       ORDER BY row.fetched_at DESC, row.id DESC
                   ) AS place
              FROM {table.name} AS entity
              JOIN advertisers AS seller ON seller.id = entity.advertiser_id AND seller.public_id = $1
              {table.joins}
             CROSS JOIN generate_series($3::date, $4::date, interval '1 day') AS day
             CROSS JOIN LATERAL (
                (SELECT id, fetched_at, provider, external_entity_id, semantics, {_join_columns(COUNTED)}
                   FROM sync.ad_stats_raw
                  WHERE seller_id = $1 AND entity_type = $2 AND entity_id = entity.public_id AND date_start = day::date
                  ORDER BY fetched_at DESC, id DESC
                  LIMIT 1)
                UNION ALL
                SELECT 0, '-infinity', account.platform, {table.own}, 'dropped', {_join_columns(COUNTED)}
                  FROM sync.ad_stats_daily
                 WHERE seller_id = $1 AND entity_type = $2 AND entity_id = entity.public_id AND stat_date = day::date
                   AND NOT EXISTS (
                        SELECT FROM sync.ad_stats_raw
                         WHERE seller_id = $1 AND entity_type = $2 AND entity_id = entity.public_id
                           AND date_start = day::date
                   )
                 LIMIT 1
             ) AS row
        ), forgotten AS (
            -- By a list, which is nearly always empty: without statistics PostgreSQL would compare each row with each.
            DELETE FROM sync.ad_stats_daily AS it
             WHERE it.seller_id = $1 AND it.entity_type = $2 AND it.stat_date BETWEEN $3 AND $4
               AND it.entity_id = ANY (ARRAY (SELECT entity_id FROM last WHERE place > 1))
               AND EXISTS (
                    SELECT FROM last
                     WHERE place > 1 AND last.entity_id = it.entity_id AND last.stat_date = it.stat_date
               )
        )
        INSERT INTO sync.ad_stats_daily AS it (
            seller_id, entity_type, entity_id, stat_date, {_join_columns(_DAILY_FIGURES)}, created_at, updated_at
        )
        SELECT $1, $2, entity_id, stat_date, {_join_columns(COUNTED)}, {_DAILY_RATIOS}, $5, $5
          FROM (
            SELECT last.entity_id, last.stat_date, figures.*
              FROM last
             CROSS JOIN LATERAL (
                SELECT {_join_columns(COUNTED, "last.")} WHERE last.semantics = 'snapshot'
                UNION ALL
                SELECT {", ".join(f"sum({name})" for name in COUNTED)}
                  FROM (
                    SELECT DISTINCT ON (part) {_join_columns(COUNTED)} FROM sync.ad_stats_raw
                     WHERE seller_id = $1 AND entity_type = $2 AND entity_id = last.entity_id
                       AND date_start = last.stat_date AND semantics = 'delta'
                     ORDER BY part, fetched_at DESC, id DESC
                  ) AS parts
                 WHERE last.semantics = 'delta'
                HAVING last.semantics = 'delta'
             ) AS figures
             WHERE last.place = 1
          ) AS summed
        ON CONFLICT (seller_id, entity_type, entity_id, stat_date) DO UPDATE
           SET {", ".join(f"{name} = EXCLUDED.{name}" for name in _DAILY_FIGURES)}, updated_at = EXCLUDED.updated_at
         WHERE ({_join_columns(_DAILY_FIGURES, "it.")}) IS DISTINCT FROM ({_join_columns(_DAILY_FIGURES, "EXCLUDED.")})
    """  # noqa: S608 - our own names
    for level, table in TABLES.items()
}

_PAGE_SUMS: Final = COUNTED[1:]
_PAGE_FIGURES: Final = (
    *("ad_spend", *_PAGE_SUMS, "orders_count", "revenue"),
    *("cpm", "ctr", "cost_per_purchase", "roas", "cr1", "cr2", "cr3"),
)
_PAGE_RATIOS: Final = ", ".join(
    (
        _write_ratio("ad_spend * 1000", "impressions"),
        _write_ratio("link_clicks", "impressions"),
        _write_ratio("ad_spend", "purchases"),
        _write_ratio("purchase_value", "ad_spend"),
        _write_ratio("link_clicks", "impressions"),
        _write_ratio("purchases", "link_clicks"),
        _write_ratio("purchases", "content_views"),
    )
)
# A campaign may move to another page: delete the figures of pages that no campaign leads to any more.
ADD_UP_SELLPAGES: Final = f"""
    WITH summed AS (
        SELECT page.public_id AS sellpage_id, daily.stat_date, source.ad_source,
               sum(daily.spend) AS ad_spend, {", ".join(f"sum(daily.{name}) AS {name}" for name in _PAGE_SUMS)}
          FROM sync.ad_stats_daily AS daily
          JOIN sync.campaigns AS campaign ON campaign.public_id = daily.entity_id
          JOIN sync.sellpages AS page ON page.id = campaign.sellpage_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
          JOIN unnest($5::text[], $6::text[]) AS source (platform, ad_source) ON source.platform = account.platform
         WHERE daily.seller_id = $1 AND daily.entity_type = 'CAMPAIGN' AND daily.stat_date BETWEEN $2 AND $3
         GROUP BY 1, 2, 3
    ), forgotten AS (
        DELETE FROM sync.sellpage_stats_daily AS it
         WHERE it.seller_id = $1 AND it.stat_date BETWEEN $2 AND $3 AND NOT EXISTS (
            SELECT FROM summed
             WHERE summed.sellpage_id = it.sellpage_id AND summed.stat_date = it.stat_date
               AND summed.ad_source = it.ad_source
         )
    )
    INSERT INTO sync.sellpage_stats_daily AS it (
        seller_id, sellpage_id, stat_date, ad_source, {_join_columns(_PAGE_FIGURES)}, created_at, updated_at
    )
    SELECT $1, sellpage_id, stat_date, ad_source, ad_spend, {_join_columns(_PAGE_SUMS)}, purchases, purchase_value,
           {_PAGE_RATIOS}, $4, $4
      FROM summed
    ON CONFLICT (seller_id, sellpage_id, stat_date, ad_source) DO UPDATE
       SET {", ".join(f"{name} = EXCLUDED.{name}" for name in _PAGE_FIGURES)}, updated_at = EXCLUDED.updated_at
     WHERE ({_join_columns(_PAGE_FIGURES, "it.")}) IS DISTINCT FROM ({_join_columns(_PAGE_FIGURES, "EXCLUDED.")})
"""  # noqa: S608 - our own names
RECORD_FRESHNESS: Final = """
    INSERT INTO sync.freshness AS it (seller_id, level, newest_day, synced_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (seller_id, level) DO UPDATE
       SET newest_day = greatest(it.newest_day, EXCLUDED.newest_day),
           synced_at = greatest(it.synced_at, EXCLUDED.synced_at)
     WHERE EXCLUDED.newest_day >= it.newest_day
"""


class SyncKey(msgspec.Struct, frozen=True, kw_only=True):
    """A seller, a level and a range of days (inclusive)."""

    seller_id: UUID
    level: Level
    first: date
    last: date


class FetchSource(msgspec.Struct, frozen=True, kw_only=True):
    """The provider of some rows, what the rows mean, and when they were fetched."""

    provider: Platform
    semantics: Semantics
    at: datetime


async def ensure_months(pool: Pool, days: Collection[date]) -> None:
    """Create the monthly partitions of some days where they are missing."""
    firsts = sorted({day.replace(day=1) for day in days})
    async with pool.acquire() as connection:
        await connection.execute(ENSURE_MONTHS, firsts)


async def append_raw(pool: Pool, key: SyncKey, fetched: FetchSource, rows: Sequence[StatRow]) -> int:
    """Append rows as they were fetched, all or none; return their number."""
    records = [
        (
            *(key.seller_id, key.level.value, row.entity_id, row.external_entity_id, fetched.provider.value),
            *(fetched.semantics.value, row.part, fetched.at, row.date_start, row.date_stop),
            *msgspec.structs.astuple(row.figures),
            *msgspec.structs.astuple(compute_ratios(row.figures)),
        )
        for row in rows
    ]
    async with _lock_days(pool, key) as connection:
        await connection.copy_records_to_table(
            "ad_stats_raw",
            schema_name="sync",
            columns=RAW_COLUMNS,
            records=records,
            timeout=STATEMENT_SECONDS_MAX,
        )
    return len(records)


async def load_days_with_figures(pool: Pool, key: SyncKey) -> set[tuple[UUID, date]]:
    """Return the entities and days of which there are figures."""
    async with pool.acquire() as connection:
        rows = await connection.fetch(
            WITH_FIGURES, key.seller_id, key.level.value, key.first, key.last, timeout=STATEMENT_SECONDS_MAX
        )
    return {(row["entity_id"], row["stat_date"]) for row in rows}


async def add_up_days(pool: Pool, key: SyncKey, *, now: datetime) -> int:
    """Recompute the daily figures from the raw rows; return how many rows changed."""
    async with _lock_days(pool, key) as connection:
        values = (key.seller_id, key.level.value, key.first, key.last, now)
        done = await connection.execute(ADD_UP_DAYS[key.level], *values, timeout=STATEMENT_SECONDS_MAX)
    return parse_row_count(done)


async def add_up_sellpages(pool: Pool, key: SyncKey, *, now: datetime) -> int:
    """Recompute the figures of sell pages from those of campaigns; return how many rows changed."""
    assert key.level is Level.CAMPAIGN, "campaigns lead to sell pages"
    platforms = [platform.value for platform in AD_SOURCES]
    sources = [source.value for source in AD_SOURCES.values()]
    async with _lock_days(pool, key) as connection:
        values = (key.seller_id, key.first, key.last, now, platforms, sources)
        done = await connection.execute(ADD_UP_SELLPAGES, *values, timeout=STATEMENT_SECONDS_MAX)
    return parse_row_count(done)


async def record_freshness(pool: Pool, key: SyncKey, *, now: datetime) -> None:
    """Record up to which day, and when, a seller was synced."""
    async with pool.acquire() as connection:
        await connection.execute(RECORD_FRESHNESS, key.seller_id, key.level.value, key.last, now)


@asynccontextmanager
async def _lock_days(pool: Pool, key: SyncKey) -> AsyncGenerator[Connection]:
    """Open a transaction that excludes all others on the same seller, level and days."""
    async with pool.acquire() as connection, connection.transaction():
        values = (key.seller_id, key.level.value, key.first, key.last)
        await connection.execute(LOCK_DAYS, *values, timeout=STATEMENT_SECONDS_MAX)
        yield connection
