"""SQL that erases a user from the event tables and the auctions; the counts stay.

`erased_users` remembers a digest of the user and the time. Events that were received before and are still on their
way, in the log or in a spool, are applied without the user; later events are the user's own choice. Their entries are
noted in `erased_entries`, and removed from the log when all projections have applied them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import digest_user
from adloom.events.cursor_store import ensure_cursor
from adloom.events.log.event import parse_entry_id
from adloom.runtime.postgres import Connection

NOTE_ERASURE: Final = """
    INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)
    ON CONFLICT (user_digest) DO UPDATE SET erased_at = greatest(erased_users.erased_at, EXCLUDED.erased_at)
    RETURNING erased_at
"""
# A batch that is being applied has read `erased_users` before us, and we would not see its rows.
WAIT_FOR_THE_BATCH: Final = "SELECT FROM projection_cursors WHERE projection = $1 FOR UPDATE"

# Clocks differ: a row that is here was received before, whatever its time says.
ERASE_IMPRESSIONS: Final = """
    WITH emptied AS (
        UPDATE events.banner_impressions
           SET user_id = NULL, session_id = NULL, page_url = NULL, referrer_url = NULL, client_network = NULL
         WHERE user_id = $1
        RETURNING received_at
    )
    SELECT count(*) AS rows, max(received_at) AS received_until FROM emptied
"""
ERASE_CLICKS: Final = """
    WITH emptied AS (
        UPDATE events.banner_clicks
           SET user_id = NULL, session_id = NULL, page_url = NULL, destination_url = NULL, client_network = NULL
         WHERE user_id = $1
        RETURNING received_at
    )
    SELECT count(*) AS rows, max(received_at) AS received_until FROM emptied
"""
# Conversions name nobody: with their clicks they lose what joins them to the user.
COUNT_CONVERSIONS: Final = """
    SELECT count(*) FROM events.conversions
     WHERE (request_id, slot) IN (SELECT request_id, slot FROM events.banner_clicks WHERE user_id = $1)
"""
# The bids stay; the user and the context go.
ERASE_AUCTIONS: Final = """
    WITH emptied AS (
        UPDATE auction.auctions SET user_id = NULL, context = NULL WHERE user_id = $1 RETURNING auction_time
    )
    SELECT count(*) AS rows, max(auction_time) AS received_until FROM emptied
"""
# `erased_users` has only digests; so it is asked first whether anybody was erased at all.
_ERASE_AGAIN: Final = """
    UPDATE {schema}.banner_{kind} AS it
       SET user_id = NULL, session_id = NULL, page_url = NULL, {address} = NULL, client_network = NULL
      FROM erased_users AS erased
     WHERE it.user_id IS NOT NULL AND substring(sha256(uuid_send(it.user_id)) FOR 16) = erased.user_digest
       AND it.received_at <= erased.erased_at AND erased.erased_at >= $1
"""
ANYBODY_ERASED_SINCE: Final = "SELECT EXISTS (SELECT FROM erased_users WHERE erased_at >= $1)"
NOTE_ENTRIES: Final = """
    INSERT INTO erased_entries (entry_ms, entry_seq) SELECT * FROM unnest($1::bigint[], $2::bigint[])
    ON CONFLICT DO NOTHING
"""
# The lock is that of a rebuild, which must find the entries that it has seen.
TAKE_ENTRIES: Final = """
    DELETE FROM erased_entries
     WHERE (entry_ms, entry_seq) IN (
         SELECT entry_ms, entry_seq FROM erased_entries
          WHERE (entry_ms, entry_seq) <= ($1::bigint, $2::bigint) LIMIT $3
     )
    RETURNING entry_ms, entry_seq
"""
IS_NOT_REBUILDING: Final = "SELECT pg_try_advisory_xact_lock(x'AD11'::integer, 1)"


class ErasedRows(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows had the user in them, and up to which time events are erased."""

    erased_at: datetime
    impressions: int
    clicks: int
    conversions: int = 0
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
    conversions: int = await connection.fetchval(COUNT_CONVERSIONS, user_id)
    found = [
        await connection.fetchrow(statement, user_id)
        for statement in (ERASE_IMPRESSIONS, ERASE_CLICKS, ERASE_AUCTIONS)
    ]
    impressions, clicks, auctions = (row for row in found if row is not None)
    received = [row["received_until"] for row in (impressions, clicks, auctions) if row["rows"]]
    erased_at: datetime = await connection.fetchval(NOTE_ERASURE, digest_user(user_id), max([now, *received]))
    return ErasedRows(
        erased_at=erased_at,
        impressions=impressions["rows"],
        clicks=clicks["rows"],
        conversions=conversions,
        auctions=auctions["rows"],
    )


async def erase_again(connection: Connection, schema: str, *, since: datetime) -> None:
    """Erase users who were erased since a time from tables that were not in use then."""
    if await connection.fetchval(ANYBODY_ERASED_SINCE, since):
        for kind, address in (("impressions", "referrer_url"), ("clicks", "destination_url")):
            await connection.execute(_ERASE_AGAIN.format(schema=schema, kind=kind, address=address), since)


async def note_entries(connection: Connection, entry_ids: Sequence[str]) -> None:
    """Remember entries of the log that name erased users, until they can be removed."""
    if entry_ids:
        millis, sequences = zip(*map(parse_entry_id, entry_ids), strict=True)
        await connection.execute(NOTE_ENTRIES, millis, sequences)


async def take_entries(connection: Connection, applied: str, count_max: int) -> list[str]:
    """Return some noted entries up to one and forget them, in the caller's transaction; none during a rebuild."""
    if not await connection.fetchval(IS_NOT_REBUILDING):
        return []
    rows = await connection.fetch(TAKE_ENTRIES, *parse_entry_id(applied), count_max)
    return [f"{row['entry_ms']}-{row['entry_seq']}" for row in rows]
