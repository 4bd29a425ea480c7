"""What learning keeps in PostgreSQL: its cursor, what waits, and what is learned."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from adloom.events.ctr.waiting import (
    Offer,
    PendingExample,
    decode_pending,
    encode_pending,
    parse_purchase_days,
)
from adloom.events.cursor_store import BY_INDEX, move_cursor, read_cursor, translate_database_errors
from adloom.events.log.entry import parse_entry_id
from adloom.events.log.event import OCCURRED_AGE_MAX, Impression
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.runtime.postgres import Pool
from adloom.runtime.postgres import Record as Row

LEARNING: Final = "learning"

AUCTION_PLACEMENTS: Final = """
    SELECT public_id FROM placements WHERE public_id = ANY ($1::uuid[]) AND delivery = 'auction'
"""
# Conditions on marks are those of the indexes, word for word. Of a reader who was erased nothing is known here.
IMPRESSIONS: Final = """
    SELECT impression.request_id, impression.slot, impression.entry_ms, impression.entry_seq,
           impression.placement_id, impression.banner_id, impression.campaign_id,
           auction.placement_type, auction.context
      FROM events.banner_impressions AS impression
      JOIN auction.auctions AS auction
        ON auction.id = impression.request_id AND auction.auction_time BETWEEN $4 AND $5
     WHERE impression.request_id = ANY ($1::uuid[]) AND impression.occurred_at BETWEEN $2 AND $3
       AND impression.request_id IS NOT NULL
       AND (impression.marks && '{second_impression,second_click}') IS NOT TRUE
       AND impression.is_valid AND impression.campaign_id IS NOT NULL AND auction.context IS NOT NULL
"""
CLICKS: Final = """
    SELECT request_id, slot, min(entry_ms) AS entry_ms FROM events.banner_clicks
     WHERE request_id = ANY ($1::uuid[]) AND request_id IS NOT NULL AND occurred_at >= $2 AND is_valid
       AND (marks && '{second_impression,second_click}') IS NOT TRUE
     GROUP BY request_id, slot
"""
WAIT: Final = "INSERT INTO learning_waiting (due_at, examples) VALUES ($1, $2)"
DUE: Final = """
    SELECT id, examples FROM learning_waiting WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2
"""
STATE: Final = "SELECT version, state, learned_at FROM learning_states WHERE name = $1"
FIRST_STATE: Final = """
    INSERT INTO learning_states (name, version, state, learned_at) VALUES ($1, 1, $2, $3)
    ON CONFLICT (name) DO NOTHING RETURNING 1
"""
NEXT_STATE: Final = """
    UPDATE learning_states SET version = version + 1, state = $2, learned_at = $3 WHERE name = $1 AND version = $4
    RETURNING 1
"""
TAKE_OUT: Final = "DELETE FROM learning_waiting WHERE id = ANY ($1::bigint[])"

# An offer's second is cut off, and a clock of ours may be a little ahead of another.
_OFFERED_BEFORE: Final = 2
_OFFERED_AFTER: Final = 5
_MILLIS: Final = 1_000

_database_errors: Final = partial(translate_database_errors, "The database does not say what can be learned")


class SavedState(NamedTuple):
    """What was learned, and its version: 0 where nothing was."""

    version: int
    state: bytes | None
    learned_at: datetime | None


class DuePiece(NamedTuple):
    """A piece of what waits, whose time has come."""

    id: int
    waiting: list[PendingExample]


class LearningStore:
    """The tables of learning."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read_cursor(self) -> str:
        with _database_errors():
            return await read_cursor(self._pool, LEARNING)

    async def find_impressions(self, records: Sequence[DecodedEntry]) -> list[PendingExample]:
        """Give the impressions of auctions that counted and are valid, in the order of the ledger."""
        seen = [record for record in records if _has_offer(record)]
        with _database_errors():
            if not seen:
                return []
            seen = await _of_auctions(self._pool, seen)
            if not seen:
                return []
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(IMPRESSIONS, *_asked(seen))
        # Of entries that say the same, the one that the row was made from is the event.
        entries = {parse_entry_id(record.entry_id) for record in seen}
        found = [row for row in rows if (row["entry_ms"], row["entry_seq"]) in entries]
        found.sort(key=lambda row: (row["entry_ms"], row["entry_seq"]))
        return [_waiting(row) for row in found]

    async def add_pending(
        self, waiting: Sequence[PendingExample], *, due_at: datetime, after: str, cursor: str
    ) -> None:
        """Have impressions wait, and move the cursor, both or neither."""
        with _database_errors():
            if not waiting:
                await move_cursor(self._pool, LEARNING, after=after, cursor=cursor)
                return
            async with self._pool.acquire() as connection, connection.transaction():
                await move_cursor(connection, LEARNING, after=after, cursor=cursor)
                await connection.execute(WAIT, due_at, encode_pending(waiting))

    async def read_due(self, now: datetime, *, pieces_max: int) -> list[DuePiece]:
        """Give pieces whose time has come, the oldest first."""
        with _database_errors():
            rows = await self._pool.fetch(DUE, now, pieces_max)
        return [DuePiece(row["id"], decode_pending(row["examples"])) for row in rows]

    async def find_clicks(self, waiting: Collection[PendingExample]) -> dict[Offer, int]:
        """Tell which offers have a valid click, and when the ledger took it, in milliseconds."""
        if not waiting:
            return {}
        # A browser's clock may be wrong by as much as we believe it.
        first = datetime.fromtimestamp(min(one.seen_ms for one in waiting) / _MILLIS, UTC) - OCCURRED_AGE_MAX
        # In their order, which makes looking them up cheaper.
        requests = sorted({one.request_id for one in waiting})
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(CLICKS, requests, first)
        return {(row["request_id"], row["slot"]): row["entry_ms"] for row in rows}

    async def read_state(self) -> SavedState:
        """Give what was learned."""
        with _database_errors():
            row = await self._pool.fetchrow(STATE, LEARNING)
        return (
            SavedState(0, None, None)
            if row is None
            else SavedState(row["version"], row["state"], row["learned_at"])
        )

    async def save_state(self, state: bytes, pieces: Sequence[int], *, version: int, now: datetime) -> None:
        """Keep what was learned, and take out what it was learned from; CursorMovedError where another did."""
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction():
                done = await (
                    connection.fetchval(NEXT_STATE, LEARNING, state, now, version)
                    if version
                    else connection.fetchval(FIRST_STATE, LEARNING, state, now)
                )
                if done is None:
                    raise CursorMovedError
                taken = await connection.execute(TAKE_OUT, list(pieces))
                if int(taken.rpartition(" ")[2]) != len(pieces):
                    raise CursorMovedError


def _has_offer(record: DecodedEntry) -> bool:
    event = record.event
    return isinstance(event, Impression) and event.request_id is not None and event.offered_at > 0


async def _of_auctions(pool: Pool, seen: Sequence[DecodedEntry]) -> list[DecodedEntry]:
    """Leave out what was seen on placements without auctions, which may be nearly all."""
    placements = {
        event.placement_id.int: event.placement_id for _, event in seen if isinstance(event, Impression)
    }
    rows = await pool.fetch(AUCTION_PLACEMENTS, list(placements.values()))
    known = {row["public_id"].int for row in rows}
    return [
        one
        for one in (seen if known else ())
        if isinstance(one.event, Impression) and one.event.placement_id.int in known
    ]


def _asked(seen: Sequence[DecodedEntry]) -> tuple[list[UUID], datetime, datetime, datetime, datetime]:
    events = [record.event for record in seen if isinstance(record.event, Impression)]
    moments = [event.occurred_at for event in events]
    seconds = [event.offered_at for event in events]
    return (
        sorted({event.request_id for event in events if event.request_id is not None}),
        min(moments),
        max(moments),
        datetime.fromtimestamp(min(seconds) - _OFFERED_BEFORE, UTC),
        datetime.fromtimestamp(max(seconds) + _OFFERED_AFTER, UTC),
    )


def _waiting(row: Row) -> PendingExample:
    """Take what the prediction was made of; what the impression says of the same may be something else."""
    context: Mapping[str, str] = row["context"]
    hour = context.get("hour", "")
    return PendingExample(
        row["request_id"],
        row["slot"],
        row["entry_ms"],
        row["placement_id"],
        row["banner_id"],
        row["campaign_id"],
        row["placement_type"],
        context.get("segment"),
        parse_purchase_days(context),
        context.get("device"),
        context.get("country"),
        int(hour) if hour.isascii() and hour.isdecimal() else None,
    )
