"""SQL that brings statuses up to the clock: one statement a move, set-based.

Rows that somebody is changing right now are left for the next minute: the job never makes a
person wait, and cannot get into a deadlock with one.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.resource.changes import IndexedNoun
from adloom.runtime.postgres import Connection

# A transaction's worth; the caller comes again while there is more.
ROWS_MAX: Final = 5_000

PUBLISH_BANNERS: Final = """
    WITH due AS (
        SELECT id, schedule_status AS status FROM banners
         WHERE schedule_status = 'scheduled' AND deleted_at IS NULL
           AND (publish_at IS NULL OR publish_at <= $1) AND (expires_at IS NULL OR expires_at > $1)
         ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE banners AS it SET schedule_status = 'active', updated_at = greatest($1, it.updated_at + interval '1 microsecond')
      FROM due WHERE it.id = due.id
    RETURNING it.id AS key, it.public_id AS id, due.status::text AS was, it.schedule_status::text AS is_now,
              (SELECT public_id FROM advertisers WHERE id = it.advertiser_id) AS owner_id
"""
EXPIRE_BANNERS: Final = """
    WITH due AS (
        SELECT id, schedule_status AS status FROM banners
         WHERE schedule_status IN ('scheduled', 'active') AND deleted_at IS NULL AND expires_at <= $1
         ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE banners AS it SET schedule_status = 'expired', updated_at = greatest($1, it.updated_at + interval '1 microsecond')
      FROM due WHERE it.id = due.id
    RETURNING it.id AS key, it.public_id AS id, due.status::text AS was, it.schedule_status::text AS is_now,
              (SELECT public_id FROM advertisers WHERE id = it.advertiser_id) AS owner_id
"""
START_CAMPAIGNS: Final = """
    WITH due AS (
        SELECT id, status FROM campaigns
         WHERE status = 'scheduled' AND deleted_at IS NULL
           AND starts_at <= $1 AND (ends_at IS NULL OR ends_at > $1)
         ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE campaigns AS it SET status = 'active', updated_at = greatest($1, it.updated_at + interval '1 microsecond')
      FROM due WHERE it.id = due.id
    RETURNING it.id AS key, it.public_id AS id, due.status::text AS was, it.status::text AS is_now,
              (SELECT public_id FROM advertisers WHERE id = it.advertiser_id) AS owner_id
"""
END_CAMPAIGNS: Final = """
    WITH due AS (
        SELECT id, status FROM campaigns
         WHERE status IN ('scheduled', 'active') AND deleted_at IS NULL AND ends_at <= $1
         ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE campaigns AS it SET status = 'ended', updated_at = greatest($1, it.updated_at + interval '1 microsecond')
      FROM due WHERE it.id = due.id
    RETURNING it.id AS key, it.public_id AS id, due.status::text AS was, it.status::text AS is_now,
              (SELECT public_id FROM advertisers WHERE id = it.advertiser_id) AS owner_id
"""
MOVES: Final = (
    (IndexedNoun.BANNER, PUBLISH_BANNERS),
    (IndexedNoun.BANNER, EXPIRE_BANNERS),
    (IndexedNoun.CAMPAIGN, START_CAMPAIGNS),
    (IndexedNoun.CAMPAIGN, END_CAMPAIGNS),
)


class StatusMove(msgspec.Struct, frozen=True, kw_only=True):
    """One thing whose status the clock has moved."""

    noun: IndexedNoun
    key: int
    id: UUID
    owner_id: UUID | None
    was: str
    is_now: str


async def move_due(connection: Connection, *, now: datetime, rows_max: int = ROWS_MAX) -> list[StatusMove]:
    """Move what is due, up to a bound for each move."""
    moves: list[StatusMove] = []
    for noun, statement in MOVES:
        rows = await connection.fetch(statement, now, rows_max)
        moves += (StatusMove(noun=noun, **row) for row in rows)
    return moves
