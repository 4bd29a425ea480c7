"""Requests of contextual slots in PostgreSQL: what Valkey has counted of a day, written again and again.

Counts only grow, so the larger one is right: what is written twice changes nothing, and a Valkey that has lost its
counts takes nothing back.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

from adloom.budgets.traffic.page_counts import SlotCounts, SlotOnPage
from adloom.runtime.postgres import Pool

DAYS_KEPT: Final = 8

WRITE_SLOTS: Final = """
    INSERT INTO slot_requests AS known (placement_id, hour, requests, filled)
    SELECT placement.id, it.hour, it.requests, it.filled
      FROM unnest($1::integer[], $2::timestamptz[], $3::bigint[], $4::bigint[]) AS it (placement_id, hour, requests, filled)
      JOIN placements AS placement ON placement.id = it.placement_id
    ON CONFLICT (placement_id, hour) DO UPDATE SET requests = excluded.requests, filled = excluded.filled
     WHERE known.requests < excluded.requests
"""
# A page that is gone, or was never stored, has no row.
WRITE_PAGES: Final = """
    INSERT INTO page_requests AS known (day, placement_id, page_id, requests)
    SELECT $1, placement.id, page.id, it.requests
      FROM unnest($2::integer[], $3::text[], $4::bigint[]) AS it (placement_id, url, requests)
      JOIN placements AS placement ON placement.id = it.placement_id
      JOIN site_pages AS page ON page.site_id = placement.site_id AND page.url = it.url
    ON CONFLICT (placement_id, day, page_id) DO UPDATE SET requests = excluded.requests
     WHERE known.requests < excluded.requests
"""
FORGET: Final = (
    "DELETE FROM slot_requests WHERE hour < $1",
    "DELETE FROM page_requests WHERE day < $1",
)


async def write_slot_requests(pool: Pool, counts: Mapping[tuple[int, datetime], SlotCounts]) -> None:
    ordered = sorted(counts)
    await pool.execute(
        WRITE_SLOTS,
        [placement_key for placement_key, _ in ordered],
        [hour for _, hour in ordered],
        [counts[key].requests for key in ordered],
        [counts[key].filled for key in ordered],
    )


async def write_page_requests(pool: Pool, day: date, counts: Mapping[SlotOnPage, int]) -> None:
    await pool.execute(
        WRITE_PAGES,
        day,
        [one.placement_key for one in counts],
        [one.url for one in counts],
        list(counts.values()),
    )


async def forget_requests(pool: Pool, now: datetime) -> None:
    """Delete the days that no simulation looks back to."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS_KEPT)
    await pool.execute(FORGET[0], midnight)
    await pool.execute(FORGET[1], midnight.date())
