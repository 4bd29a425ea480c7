"""Records what delivery has counted of contextual slots and pages, for simulated markets.

What Valkey has counted of a day is written again and again. Counts only grow, so the larger one is right: what is
written twice changes nothing, and a Valkey that has lost its counts takes nothing back.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

from adloom.budgets.traffic.page_counts import SlotCounts, SlotOnPage, iter_page_counts, read_slot_counts
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import Pool, raise_if_away
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

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
RECORD_SECONDS: Final = 300.0
AWAY: Final = (UnavailableError, *VALKEY_AWAY)


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


class PageTrafficRecorder:
    """Copies the counts of yesterday and today from Valkey to PostgreSQL."""

    def __init__(self, pool: Pool, valkey: Valkey, clock: Clock) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        # After a failure the next turn writes the same and more.
        await PollLoop(self.record, every_seconds=RECORD_SECONDS, away=AWAY, name="page_traffic").run(stop)

    async def record(self) -> None:
        """Write what was counted; what was written before is not written again."""
        now = self._clock.now().astimezone(UTC)
        today = now.date()
        with raise_if_away("Requests of pages cannot be written"):
            for day in (today - timedelta(days=1), today):
                slots = await read_slot_counts(self._valkey, day)
                if not slots:
                    continue
                await write_slot_requests(self._pool, slots)
                async for pages in iter_page_counts(self._valkey, day):
                    await write_page_requests(self._pool, day, pages)
            await forget_requests(self._pool, now)
