"""SQL that takes a person out of the event tables and the auctions; what was counted stays counted.

`erased_users` remembers who it was and when. Events of theirs that were received before and are still on
their way, in the ledger or in a spool, are folded without them; what they report later is theirs to give.
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
# A batch that is being folded has read `erased_users` before us, and its rows would not be seen by us.
WAIT_FOR_THE_BATCH: Final = "SELECT FROM projection_cursors WHERE projection = $1 FOR UPDATE"

# Clocks differ: what is here was received before, whatever its own says.
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
# What was bid for them stays; what they were known by does not.
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
    """How many rows had the person in them, and since when nothing before is theirs any more."""

    erased_at: datetime
    impressions: int
    clicks: int
    auctions: int = 0


async def erase_user(
    connection: Connection, user_id: UUID, *, projections: Sequence[str], now: datetime
) -> ErasedRows:
    """Take a person out of all rows, and remember to do so with what is on its way; in the caller's transaction.

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
    """Take those who were erased lately out of tables that were not in use then."""
    for statement in ERASE_AGAIN:
        await connection.execute(statement.format(schema=schema), since)
