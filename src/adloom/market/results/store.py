"""The projection `contextual_results`: what happened in contextual slots by creative, category and minute, in PostgreSQL.

Rows are only added, in the order of the event log, and numbered: a reader keeps how far it has read.
They follow the event tables, so only what these have counted and believe is in them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from adloom.core.ids import BannerId, PlacementId, SiteId
from adloom.events.cursor_store import lock_cursor, move_cursor, read_cursor, translate_database_errors
from adloom.events.followers.counted import CountedLookup
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.market.results.count import (
    CLICK,
    BatchCounts,
    Offer,
    ResultCount,
    ResultKey,
    add,
    count_batch,
    is_contextual,
)
from adloom.market.results.window import WINDOW, ResultRow
from adloom.runtime.postgres import Connection, Pool

CONTEXTUAL_RESULTS: Final = "contextual_results"
ROWS_MAX: Final = 5_000
KEPT: Final = timedelta(days=2)  # Much longer than any reader needs.

# What was deleted meanwhile has no results.
ADD: Final = """
    INSERT INTO contextual_results (site_id, banner_id, category, minute, impressions, clicks, revenue_micros)
    SELECT placement.site_id, banner.id, said.category, said.minute, said.impressions, said.clicks, said.revenue
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::integer[], $6::integer[], $7::bigint[])
           AS said (placement_id, banner_id, category, minute, impressions, clicks, revenue)
      JOIN placements AS placement ON placement.public_id = said.placement_id
      JOIN sites AS site ON site.id = placement.site_id
      JOIN banners AS banner ON banner.public_id = said.banner_id
"""
WAIT: Final = """
    INSERT INTO contextual_clicks_waiting (request_id, slot, placement_id, banner_id, category, minute)
    SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[])
    ON CONFLICT (request_id, slot) DO NOTHING
"""
TAKE_SEEN: Final = """
    DELETE FROM contextual_clicks_waiting AS it
     USING unnest($1::uuid[], $2::smallint[]) AS seen (request_id, slot)
     WHERE it.request_id = seen.request_id AND it.slot = seen.slot
    RETURNING it.placement_id, it.banner_id, it.category, it.minute
"""
ROWS: Final = """
    SELECT it.id, site.public_id, it.banner_id, it.category, it.minute, it.impressions, it.clicks, it.xmin::text::bigint
      FROM contextual_results AS it JOIN sites AS site ON site.id = it.site_id
     WHERE it.id > $1 ORDER BY it.id LIMIT $2
"""
WINDOW_ROWS: Final = """
    SELECT max(it.id), site.public_id, it.banner_id, '', it.minute, sum(it.impressions)::integer, sum(it.clicks)::integer
      FROM contextual_results AS it JOIN sites AS site ON site.id = it.site_id
     WHERE it.minute > $1 AND it.id <= $2
     GROUP BY 2, 3, 5
"""
OF_SITE: Final = """
    SELECT banner_id, sum(impressions)::integer, sum(clicks)::integer FROM contextual_results
     WHERE site_id = $1 AND minute > $2 GROUP BY 1
"""
NEWEST: Final = "SELECT coalesce(max(id), 0) FROM contextual_results"
# The categories with rows that their rankers have not recorded yet, on a site and on all sites.
BEHIND: Final = """
    SELECT DISTINCT said.category, said.site
      FROM contextual_results AS it JOIN sites AS site ON site.id = it.site_id,
           LATERAL (VALUES (it.category, site.public_id::text), (it.category, '*')) AS said (category, site)
      LEFT JOIN category_results AS known ON known.category = said.category AND known.site = said.site
     WHERE it.id > coalesce(known.through, 0)
"""
BY_CATEGORY: Final = """
    SELECT site.public_id, it.category, sum(it.impressions)::bigint, sum(it.revenue_micros)::bigint
      FROM contextual_results AS it JOIN sites AS site ON site.id = it.site_id
     WHERE it.minute >= $1 AND it.minute < $2 AND site.floor_mode = 'sweep'
     GROUP BY 1, 2
"""
SWEEPING: Final = "SELECT public_id FROM sites WHERE floor_mode = 'sweep' AND NOT is_suspended"
LEARNING_PLACEMENTS: Final = """
    SELECT id FROM placements WHERE rotation = 'best' AND delivery = 'direct' AND is_active ORDER BY id
"""
# What is not valid teaches nothing.
ON_PLACEMENTS: Final = """
    SELECT placement.public_id, counted.banner_id,
           sum(counted.impressions - counted.invalid_impressions)::bigint,
           sum(counted.clicks - counted.invalid_clicks)::bigint
      FROM events.event_counts AS counted JOIN placements AS placement ON placement.id = counted.placement_id
     WHERE counted.placement_id = ANY ($1::integer[]) AND counted.hour >= $2 AND counted.hour < $3
     GROUP BY 1, 2
"""
CLEAN: Final = (
    "DELETE FROM contextual_results WHERE minute < $1",
    "DELETE FROM contextual_clicks_waiting WHERE minute < $1",
)
# What rankers have forgotten, and of a category the sites beyond a bound: those that were seen longest ago.
CLEAN_RANKERS: Final = """
    DELETE FROM category_results AS it
     USING (
        SELECT category, site, row_number() OVER (PARTITION BY category ORDER BY at DESC) AS place
          FROM category_results WHERE site <> '*'
     ) AS ranked
     WHERE it.category = ranked.category AND it.site = ranked.site AND (it.at < $1 OR ranked.place > $2)
"""

PlacementCounts = Mapping[PlacementId, Mapping[int, tuple[int, int]]]  # Impressions and clicks by banner.

_database_errors: Final = partial(translate_database_errors, "The database does not take the results")


class ContextualResults:
    """The projection; its cursor moves in the transaction that adds the rows."""

    def __init__(self, pool: Pool, lookup: CountedLookup) -> None:
        self._pool = pool
        self._lookup = lookup

    async def read_cursor(self) -> str:
        return await read_cursor(self._pool, CONTEXTUAL_RESULTS)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Add what counted and move the cursor, both or neither."""
        chosen = [record for record in records if is_contextual(record.event)]
        counted = await self._lookup.find_counted(chosen) if chosen else []
        counts = count_batch(counted)
        with _database_errors():
            if not counted:
                await move_cursor(self._pool, CONTEXTUAL_RESULTS, after=after, cursor=cursor)
                return BatchResult(repeated=len(chosen))
            async with self._pool.acquire() as connection, connection.transaction():
                await lock_cursor(connection, CONTEXTUAL_RESULTS, after=after)
                await write_counts(connection, counts)
                await move_cursor(connection, CONTEXTUAL_RESULTS, after=after, cursor=cursor)
        return BatchResult(counted=len(counted), repeated=len(chosen) - len(counted))


async def write_counts(connection: Connection, counts: BatchCounts) -> None:
    added = dict(counts.added)
    for key in await _take_seen(connection, counts.seen):
        add(added, key, CLICK)
    if counts.waiting:
        keys = counts.waiting.values()
        await connection.execute(WAIT, *zip(*counts.waiting, strict=True), *_list_columns(keys))
    if added:
        await connection.execute(ADD, *_list_columns(added), *_list_columns(added.values()))


async def _take_seen(connection: Connection, seen: Collection[Offer]) -> list[ResultKey]:
    if not seen:
        return []
    rows = await connection.fetch(TAKE_SEEN, *zip(*sorted(seen), strict=True))
    return [
        ResultKey(PlacementId(placement_id), BannerId(banner_id), category, minute)
        for placement_id, banner_id, category, minute in rows
    ]


def _list_columns(rows: Collection[ResultKey] | Collection[ResultCount]) -> list[list[object]]:
    return [list(column) for column in zip(*map(msgspec.structs.astuple, rows), strict=True)]


async def read_newest(pool: Pool) -> int:
    return await pool.fetchval(NEWEST)


async def read_rows(pool: Pool, *, after: int) -> list[ResultRow]:
    """Read what was added after a row, in order, so many at once."""
    return [ResultRow(*row) for row in await pool.fetch(ROWS, after, ROWS_MAX)]


async def read_window(pool: Pool, *, until: int, now: datetime) -> list[ResultRow]:
    """Read the last hour up to a row, summed by site, creative and minute."""
    return [ResultRow(*row) for row in await pool.fetch(WINDOW_ROWS, now - WINDOW, until)]


async def read_site_results(
    connection: Connection, site_key: int, *, now: datetime
) -> Mapping[int, tuple[int, int]]:
    """Read impressions and clicks of the last hour on a site by creative."""
    rows = await connection.fetch(OF_SITE, site_key, now - WINDOW)
    return {banner_key: (impressions, clicks) for banner_key, impressions, clicks in rows}


async def list_learning_placements(pool: Pool) -> list[int]:
    """Return the active direct placements on which the better banner wins."""
    return [row[0] for row in await pool.fetch(LEARNING_PLACEMENTS)]


async def count_on_placements(
    pool: Pool, placement_keys: Sequence[int], since: datetime, until: datetime
) -> PlacementCounts:
    """Count valid impressions and clicks by banner on some placements, from one hour to another."""
    found: dict[PlacementId, dict[int, tuple[int, int]]] = {}
    rows = await pool.fetch(ON_PLACEMENTS, placement_keys, since, until) if placement_keys else ()
    for placement_id, banner_key, impressions, clicks in rows:
        found.setdefault(PlacementId(placement_id), {})[banner_key] = impressions, clicks
    return found


async def find_behind(pool: Pool) -> list[tuple[str, str]]:
    """Return categories and sites whose rankers have not recorded all rows."""
    return [(category, site) for category, site in await pool.fetch(BEHIND)]


async def read_categories(
    pool: Pool, *, since: datetime, until: datetime
) -> dict[SiteId, dict[str, tuple[int, int]]]:
    """Read impressions and revenue by category, of sites whose floors move."""
    found: dict[SiteId, dict[str, tuple[int, int]]] = {}
    for site_id, category, impressions, revenue in await pool.fetch(BY_CATEGORY, since, until):
        found.setdefault(SiteId(site_id), {})[category] = impressions, revenue
    return found


async def list_sweeping(pool: Pool) -> list[SiteId]:
    """Return the sites whose floors move."""
    return [SiteId(row[0]) for row in await pool.fetch(SWEEPING)]


async def clean(pool: Pool, *, now: datetime, forgotten_after: timedelta, sites_max: int) -> None:
    """Delete rows that everybody has read, and rankers that have nothing to say any more."""
    for statement in CLEAN:
        await pool.execute(statement, now - KEPT)
    await pool.execute(CLEAN_RANKERS, now - forgotten_after, sites_max)
