"""Events as the projection writes them (rows, counts and days in one transaction), inserted by SQL."""

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from adloom.runtime.postgres import Pool

NOON = datetime(2026, 11, 14, 12, 0, tzinfo=UTC)
KINDS = ("impressions", "clicks")

_numbers = itertools.count()

INSERT = """
    INSERT INTO events.banner_{kind} (
        correlation_id, banner_id, placement_id, campaign_id, country_code, device_type,
        occurred_at, received_at, is_valid, marks, entry_ms, entry_seq
    )
    SELECT correlation_id, banner_id, placement_id, campaign_id, country_code, device_type,
           occurred_at, occurred_at, is_valid AND mark IS NULL, CASE WHEN mark IS NOT NULL THEN ARRAY[mark] END, 0, 0
      FROM unnest(
          $1::text[], $2::int[], $3::int[], $4::int[], $5::text[], $6::text[], $7::timestamptz[], $8::bool[], $9::text[]
      ) AS it (
          correlation_id, banner_id, placement_id, campaign_id, country_code, device_type, occurred_at, is_valid, mark
      )
"""
COUNT = """
    INSERT INTO events.event_counts AS it (
        hour, banner_id, placement_id, campaign_id, country_code, device_type, {kind}, invalid_{kind}, unbound_{kind}
    )
    SELECT date_trunc('hour', occurred_at, 'UTC'), banner_id, placement_id, campaign_id, country_code, device_type,
           count(*) FILTER (WHERE mark IS NULL), count(*) FILTER (WHERE mark IS NULL AND NOT is_valid), count(mark)
      FROM unnest(
          $1::int[], $2::int[], $3::int[], $4::text[], $5::text[], $6::timestamptz[], $7::bool[], $8::text[]
      ) AS it (banner_id, placement_id, campaign_id, country_code, device_type, occurred_at, is_valid, mark)
     WHERE mark IS DISTINCT FROM 'not_assigned'
     GROUP BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (hour, banner_id, placement_id, campaign_id, country_code, device_type) DO UPDATE
       SET {kind} = it.{kind} + EXCLUDED.{kind}, invalid_{kind} = it.invalid_{kind} + EXCLUDED.invalid_{kind},
           unbound_{kind} = it.unbound_{kind} + EXCLUDED.unbound_{kind}
"""
ADD_DAYS = """
    INSERT INTO events.event_days AS it (day, events)
    SELECT (moment AT TIME ZONE 'UTC')::date, count(*) FROM unnest($1::timestamptz[]) AS moment GROUP BY 1
    ON CONFLICT (day) DO UPDATE SET events = it.events + EXCLUDED.events
"""
ENSURE_DAYS = """
    SELECT ensure_event_day('events', day)
      FROM (SELECT DISTINCT (moment AT TIME ZONE 'UTC')::date FROM unnest($1::timestamptz[]) AS moment) AS it (day)
"""


class EventRow(NamedTuple):
    """An impression or a click, by the keys of the database."""

    kind: str
    banner: int
    placement: int
    campaign: int | None
    country: str | None
    device: str | None
    at: datetime
    is_valid: bool
    mark: str | None = None  # `unbound` or `not_assigned`.


def an_event(**fields: Any) -> EventRow:
    """An impression at noon of a day that is over, without a campaign."""
    usual = EventRow("impressions", 1, 1, None, None, None, NOON, is_valid=True)
    return usual._replace(**fields)


async def insert_events(pool: Pool, *events: EventRow) -> None:
    async with pool.acquire() as connection, connection.transaction():
        moments = [event.at for event in events]
        await connection.execute(ENSURE_DAYS, moments)
        await connection.execute(ADD_DAYS, moments)
        for kind in KINDS:
            of_kind = [event for event in events if event.kind == kind]
            if of_kind:
                ids = [f"event-{next(_numbers)}" for _ in of_kind]
                columns = _columns(of_kind)
                await connection.execute(INSERT.format(kind=kind), ids, *columns)
                await connection.execute(COUNT.format(kind=kind), *columns)


def _columns(events: Iterable[EventRow]) -> list[list[Any]]:
    return [list(column) for column in zip(*(event[1:] for event in events), strict=True)]


async def insert_catalog(pool: Pool, count: int) -> None:
    """Insert this many banners, placements and campaigns; their keys count from 1."""
    for statement in (
        "INSERT INTO banners (public_id, title, primary_image_url) SELECT gen_random_uuid(), 'B', 'https://x/'",
        "INSERT INTO campaigns (public_id, name) SELECT gen_random_uuid(), 'C'",
        """INSERT INTO placements (public_id, slug, label, layout_type)
           SELECT gen_random_uuid(), 'p' || n, 'P', 'full_slider'""",
    ):
        await pool.execute(f"{statement} FROM generate_series(1, {count:d}) AS n")
