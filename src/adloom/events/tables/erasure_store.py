"""SQL that erases a user from the event tables and the auctions; the counts stay.

`erased_users` remembers the user and the time. Events that were received before and are still on their way, in
the log or in a spool, are applied without the user; later events are the user's own choice.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.events.cursor_store import ensure_cursor
from adloom.runtime.postgres import Connection

NOTE_ERASURE: Final = """
    INSERT INTO erased_users (user_id, erased_at) VALUES ($1, $2)
    ON CONFLICT (user_id) DO UPDATE SET erased_at = greatest(erased_users.erased_at, EXCLUDED.erased_at)
    RETURNING erased_at
"""
# A batch that is being applied has read `erased_users` before us, and we would not see its rows.
WAIT_FOR_THE_BATCH: Final = "SELECT FROM projection_cursors WHERE projection = $1 FOR UPDATE"

# Clocks differ: a row that is here was received before, whatever its time says.
ERASE_IMPRESSIONS: Final = """
    WITH emptied AS (
        UPDATE events.banner_impressions
           SET user_id = NULL, session_id = NULL, page_url = NULL, referrer_url = NULL
         WHERE user_id = $1
        RETURNING received_at
    )
    SELECT count(*) AS rows, max(received_at) AS received_until FROM emptied
"""
ERASE_CLICKS: Final = """
    WITH emptied AS (
        UPDATE events.banner_clicks SET user_id = NULL, session_id = NULL, page_url = NULL
         WHERE user_id = $1
        RETURNING received_at
    )
    SELECT count(*) AS rows, max(received_at) AS received_until FROM emptied
"""
# The bids stay; the user and the context go.
ERASE_AUCTIONS: Final = """
    WITH emptied AS (
        UPDATE auction.auctions SET user_id = NULL, context = NULL WHERE user_id = $1 RETURNING auction_time
    )
    SELECT count(*) AS rows, max(auction_time) AS received_until FROM emptied
"""
ERASE_AGAIN: Final = (
    """
    UPDATE {schema}.banner_impressions AS it
       SET user_id = NULL, session_id = NULL, page_url = NULL, referrer_url = NULL
      FROM erased_users AS erased
     WHERE it.user_id = erased.user_id AND it.received_at <= erased.erased_at AND erased.erased_at >= $1
    """,
    """
    UPDATE {schema}.banner_clicks AS it
       SET user_id = NULL, session_id = NULL, page_url = NULL
      FROM erased_users AS erased
     WHERE it.user_id = erased.user_id AND it.received_at <= erased.erased_at AND erased.erased_at >= $1
    """,
)


class ErasedRows(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows had the user in them, and up to which time events are erased."""

    erased_at: datetime
    impressions: int
    clicks: int
    auctions: int = 0


async def erase_user(
    connection: Connection, user_id: UUID, *, projections: Sequence[str], now: datetime
) -> ErasedRows:
    """Erase a user from all rows, and remember it for events on their way; in the caller's transaction.

    `projections` are those that write the rows, always in the same order.
    """
    for projection in projections:
        await ensure_cursor(connection, projection)
        await connection.execute(WAIT_FOR_THE_BATCH, projection)
    found = [
        await connection.fetchrow(statement, user_id)
        for statement in (ERASE_IMPRESSIONS, ERASE_CLICKS, ERASE_AUCTIONS)
    ]
    impressions, clicks, auctions = (row for row in found if row is not None)
    received = [row["received_until"] for row in (impressions, clicks, auctions) if row["rows"]]
    erased_at: datetime = await connection.fetchval(NOTE_ERASURE, user_id, max([now, *received]))
    return ErasedRows(
        erased_at=erased_at,
        impressions=impressions["rows"],
        clicks=clicks["rows"],
        auctions=auctions["rows"],
    )


async def erase_again(connection: Connection, schema: str, *, since: datetime) -> None:
    """Erase users who were erased since a time from tables that were not in use then."""
    for statement in ERASE_AGAIN:
        await connection.execute(statement.format(schema=schema), since)
