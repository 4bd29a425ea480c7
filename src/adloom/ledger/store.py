"""Impressions, clicks and their counts in PostgreSQL, with the cursor of the ledger beside them."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

import asyncpg

from adloom.core.errors import UnavailableError
from adloom.ledger.event import Click, Event, Impression
from adloom.ledger.projection import CursorMovedError, Folded, UnfoldableError
from adloom.ledger.stream import BEGINNING
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

EVENT_TABLES: Final = "event_tables"

ENSURE_CURSOR = """
    INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, $2) ON CONFLICT (projection) DO NOTHING
"""
CURSOR = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
CURSORS = "SELECT entry_id FROM projection_cursors"
# The lock makes two workers take turns, so that neither waits for rows of the other in a circle.
LOCK_CURSOR = "SELECT entry_id FROM projection_cursors WHERE projection = $1 FOR UPDATE"
MOVE_CURSOR = "UPDATE projection_cursors SET entry_id = $2, moved_at = now() WHERE projection = $1"

# Only rows that were really inserted are counted, in the same statement: a repeated event finds
# its correlation id taken and adds nothing, whether it repeats in this batch or of an old one.
_FOLD = """
    WITH incoming AS (
        SELECT * FROM unnest(
            $1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::uuid[],
            $8::text[], $9::text[], $10::text[], $11::text[], $12::timestamptz[]
        ) AS event (
            correlation_id, banner, placement, campaign, request_id, session_id, user_id,
            device_type, country_code, page_url, {address}, occurred_at
        )
    ), known AS MATERIALIZED (
        SELECT incoming.*, banners.id AS banner_id, placements.id AS placement_id,
               campaigns.id AS campaign_id
          FROM incoming
          JOIN banners ON banners.public_id = incoming.banner
          JOIN placements ON placements.public_id = incoming.placement
          LEFT JOIN campaigns ON campaigns.public_id = incoming.campaign
    ), inserted AS (
        INSERT INTO {table} (
            correlation_id, banner_id, placement_id, campaign_id, request_id, session_id, user_id,
            device_type, country_code, page_url, {address}, occurred_at
        )
        SELECT correlation_id, banner_id, placement_id, campaign_id, request_id, session_id, user_id,
               device_type, country_code, page_url, {address}, occurred_at
          FROM known
        ON CONFLICT (correlation_id) DO NOTHING
        RETURNING banner_id, placement_id, campaign_id, occurred_at
    ), counted AS (
        INSERT INTO event_counts (day, banner_id, placement_id, campaign_id, {count})
        SELECT (occurred_at AT TIME ZONE 'UTC')::date, banner_id, placement_id, campaign_id, count(*)
          FROM inserted
         GROUP BY 1, 2, 3, 4
        ON CONFLICT (day, banner_id, placement_id, campaign_id)
        DO UPDATE SET {count} = event_counts.{count} + EXCLUDED.{count}
    )
    SELECT (SELECT count(*) FROM known) AS known, (SELECT count(*) FROM inserted) AS inserted
"""
FOLD_IMPRESSIONS = _FOLD.format(table="banner_impressions", address="referrer_url", count="impressions")
FOLD_CLICKS = _FOLD.format(table="banner_clicks", address="destination_url", count="clicks")


class EventTables:
    """The projection that statistics are read from."""

    def __init__(self, pool: Pool, *, projection: str = EVENT_TABLES) -> None:
        self._pool = pool
        self._projection = projection

    async def cursor(self) -> str:
        """Tell the last entry that was folded; at first there is none."""
        with _unavailable_when_away():
            await self._pool.execute(ENSURE_CURSOR, self._projection, BEGINNING)
            return await self._pool.fetchval(CURSOR, self._projection)

    async def commit(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        """Insert the events, count those that are new and move the cursor, in one transaction."""
        impressions = [event for event in events if isinstance(event, Impression)]
        clicks = [event for event in events if isinstance(event, Click)]
        with _unavailable_when_away():
            async with self._pool.acquire() as connection, connection.transaction():
                if await connection.fetchval(LOCK_CURSOR, self._projection) != after:
                    raise CursorMovedError
                known_impressions, new_impressions = await _fold_impressions(connection, impressions)
                known_clicks, new_clicks = await _fold_clicks(connection, clicks)
                await connection.execute(MOVE_CURSOR, self._projection, cursor)
        known, new = known_impressions + known_clicks, new_impressions + new_clicks
        return Folded(counted=new, repeated=known - new, dropped=len(events) - known)


async def all_cursors(pool: Pool) -> list[str]:
    """Tell the cursor of every projection."""
    with _unavailable_when_away():
        return [row["entry_id"] for row in await pool.fetch(CURSORS)]


async def _fold_impressions(connection: Connection, events: Sequence[Impression]) -> tuple[int, int]:
    return await _fold(connection, FOLD_IMPRESSIONS, events, [event.referrer_url for event in events])


async def _fold_clicks(connection: Connection, events: Sequence[Click]) -> tuple[int, int]:
    return await _fold(connection, FOLD_CLICKS, events, [event.destination_url for event in events])


async def _fold(
    connection: Connection, statement: str, events: Sequence[Event], addresses: Sequence[str | None]
) -> tuple[int, int]:
    """Tell how many of the events are of things that exist, and how many of those are new."""
    if not events:
        return 0, 0
    row = await connection.fetchrow(
        statement,
        [event.correlation_id for event in events],
        [event.banner_id for event in events],
        [event.placement_id for event in events],
        [event.campaign_id for event in events],
        [event.request_id for event in events],
        [event.session_id for event in events],
        [event.user_id for event in events],
        [event.device_type for event in events],
        [event.country_code for event in events],
        [event.page_url for event in events],
        addresses,
        [event.occurred_at for event in events],
    )
    assert row is not None
    return row["known"], row["inserted"]


@contextmanager
def _unavailable_when_away() -> Generator[None]:
    try:
        yield
    except (asyncpg.DataError, ValueError) as error:  # The server's refusal of a value, and the driver's.
        raise UnfoldableError(repr(error)) from error
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"The database does not take the batch: {error!r}") from error
