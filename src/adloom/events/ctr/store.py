"""SQL of learning: its cursor, pending examples, and the state of the model."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.auction.calibration import CalibrationReport
from adloom.events.ctr.pending import (
    Offer,
    PendingExample,
    decode_pending,
    encode_pending,
    parse_purchase_days,
)
from adloom.events.cursor_store import BY_INDEX, move_cursor, read_cursor, translate_database_errors
from adloom.events.log.event import OCCURRED_AGE_MAX, Impression, parse_entry_id
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.runtime.postgres import Connection, Pool, parse_row_count
from adloom.runtime.postgres import Record as Row

LEARNING: Final = "learning"

AUCTION_PLACEMENTS: Final = """
    SELECT public_id FROM placements WHERE public_id = ANY ($1::uuid[]) AND delivery = 'auction'
"""
# The first columns are the fields of a pending example. The conditions on marks equal those of the indexes, word for word. An erased user has no context.
IMPRESSIONS: Final = """
    SELECT impression.request_id, impression.slot, impression.entry_ms,
           impression.placement_id, impression.banner_id, impression.campaign_id,
           auction.placement_type, auction.context, impression.entry_seq
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
    INSERT INTO learning_states (name, version, state, learned_at, calibration) VALUES ($1, 1, $2, $3, $4::text::jsonb)
    ON CONFLICT (name) DO NOTHING RETURNING 1
"""
NEXT_STATE: Final = """
    UPDATE learning_states SET version = version + 1, state = $2, learned_at = $3, calibration = $4::text::jsonb
     WHERE name = $1 AND version = $5
    RETURNING 1
"""
CALIBRATIONS: Final = (
    "SELECT learned_at, coalesce(calibration, '[]')::text AS found FROM learning_states WHERE name = $1"
)
HAS_DUE: Final = "SELECT EXISTS (SELECT FROM learning_waiting WHERE due_at <= $1)"
TAKE_OUT: Final = "DELETE FROM learning_waiting WHERE id = ANY ($1::bigint[])"

# The offer's time is whole seconds, and clocks of ours differ a little.
_OFFERED_BEFORE: Final = 2
_OFFERED_AFTER: Final = 5
_MILLIS: Final = 1_000

_database_errors: Final = partial(translate_database_errors, "The database does not say what can be learned")


class SavedState(NamedTuple):
    """The encoded model and its version, 0 if nothing was learned yet."""

    version: int
    state: bytes | None
    learned_at: datetime | None


class SavedCalibrations(NamedTuple):
    """How well predictions agreed with clicks, when something was last learned."""

    learned_at: datetime | None
    reports: tuple[CalibrationReport, ...]


class DuePiece(NamedTuple):
    """Pending examples whose time has come."""

    id: int
    examples: list[PendingExample]


class LearningStore:
    """The tables of learning."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read_cursor(self) -> str:
        return await read_cursor(self._pool, LEARNING)

    async def find_impressions(self, records: Sequence[DecodedEntry]) -> list[PendingExample]:
        """Return the valid impressions of auctions that counted, in the order of the log."""
        with _database_errors():
            seen = [one for one in await _keep_auctioned(self._pool, records) if _has_offer(one)]
            if not seen:
                return []
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(IMPRESSIONS, *_build_arguments(seen))
        # Of entries with the same content, the one that the row was made from counts.
        entries = {parse_entry_id(record.entry_id) for record in seen}
        found = [row for row in rows if (row["entry_ms"], row["entry_seq"]) in entries]
        found.sort(key=lambda row: (row["entry_ms"], row["entry_seq"]))
        return [_build_pending(row) for row in found]

    async def add_pending(
        self, pending: Sequence[PendingExample], *, due_at: datetime, after: str, cursor: str
    ) -> None:
        """Store pending examples and move the cursor, both or neither."""
        with _database_errors():
            if not pending:
                await move_cursor(self._pool, LEARNING, after=after, cursor=cursor)
                return
            async with self._pool.acquire() as connection, connection.transaction():
                await move_cursor(connection, LEARNING, after=after, cursor=cursor)
                await connection.execute(WAIT, due_at, encode_pending(pending))

    async def has_due(self, now: datetime) -> bool:
        with _database_errors():
            return await self._pool.fetchval(HAS_DUE, now)

    async def read_due(self, now: datetime, *, pieces_max: int) -> list[DuePiece]:
        with _database_errors():
            rows = await self._pool.fetch(DUE, now, pieces_max)
        return [DuePiece(row["id"], decode_pending(row["examples"])) for row in rows]

    async def find_clicks(self, pending: Collection[PendingExample]) -> dict[Offer, int]:
        """Return the offers with a valid click, and when the log took it, in milliseconds."""
        if not pending:
            return {}
        # A browser's clock may be wrong by as much as we accept.
        first = datetime.fromtimestamp(min(one.seen_ms for one in pending) / _MILLIS, UTC) - OCCURRED_AGE_MAX
        requests = _sort_distinct(one.request_id for one in pending)
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(CLICKS, requests, first)
        return {(row["request_id"], row["slot"]): row["entry_ms"] for row in rows}

    async def read_state(self) -> SavedState:
        with _database_errors():
            row = await self._pool.fetchrow(STATE, LEARNING)
        return (
            SavedState(0, None, None)
            if row is None
            else SavedState(row["version"], row["state"], row["learned_at"])
        )

    async def save_state(
        self,
        state: bytes,
        pieces: Sequence[int],
        *,
        version: int,
        now: datetime,
        calibrations: Sequence[CalibrationReport] = (),
    ) -> None:
        """Save the state and delete the examples it was learned from; CursorMovedError if another worker did."""
        reports = msgspec.json.encode(calibrations).decode()
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction():
                done = await (
                    connection.fetchval(NEXT_STATE, LEARNING, state, now, reports, version)
                    if version
                    else connection.fetchval(FIRST_STATE, LEARNING, state, now, reports)
                )
                if done is None:
                    raise CursorMovedError
                taken = await connection.execute(TAKE_OUT, list(pieces))
                if parse_row_count(taken) != len(pieces):
                    raise CursorMovedError


async def read_model_state(connection: Connection) -> bytes | None:
    """Read what the model knows; None if nothing was learned yet."""
    row = await connection.fetchrow(STATE, LEARNING)
    return None if row is None else row["state"]


async def read_calibrations(pool: Pool) -> SavedCalibrations:
    """Read how well predictions agree with clicks, for the control plane."""
    row = await pool.fetchrow(CALIBRATIONS, LEARNING)
    if row is None:
        return SavedCalibrations(None, ())
    return SavedCalibrations(
        row["learned_at"], msgspec.json.decode(row["found"], type=tuple[CalibrationReport, ...])
    )


def _has_offer(record: DecodedEntry) -> bool:
    event = record.event
    return isinstance(event, Impression) and event.request_id is not None and event.offered_at > 0


async def _keep_auctioned(pool: Pool, records: Sequence[DecodedEntry]) -> list[DecodedEntry]:
    """Leave out impressions of placements without auctions, which may be nearly all."""
    placements = {
        event.placement_id.int: event.placement_id
        for one in records
        if isinstance(event := one.event, Impression)
    }
    rows = await pool.fetch(AUCTION_PLACEMENTS, list(placements.values())) if placements else ()
    known = {row["public_id"].int for row in rows}
    return [
        one
        for one in (records if known else ())
        if isinstance(one.event, Impression) and one.event.placement_id.int in known
    ]


def _build_arguments(
    seen: Sequence[DecodedEntry],
) -> tuple[list[UUID], datetime, datetime, datetime, datetime]:
    events = [record.event for record in seen if isinstance(record.event, Impression)]
    moments = [event.occurred_at for event in events]
    seconds = [event.offered_at for event in events]
    return (
        _sort_distinct(event.request_id for event in events if event.request_id is not None),
        min(moments),
        max(moments),
        datetime.fromtimestamp(min(seconds) - _OFFERED_BEFORE, UTC),
        datetime.fromtimestamp(max(seconds) + _OFFERED_AFTER, UTC),
    )


def _sort_distinct(ids: Iterable[UUID]) -> list[UUID]:
    """Sort ids, each once, because sorted keys are cheaper to look up; by their numbers, which compare much faster."""
    by_number = {one.int: one for one in ids}
    return [by_number[number] for number in sorted(by_number)]


def _build_pending(row: Row) -> PendingExample:
    """Use the context of the prediction; the impression may name another one."""
    context: Mapping[str, str] = row["context"]
    hour = context.get("hour", "")
    return PendingExample(
        *row[:7],
        segment=context.get("segment"),
        last_purchase_days=parse_purchase_days(context),
        device=context.get("device"),
        country=context.get("country"),
        hour=int(hour) if hour.isascii() and hour.isdecimal() else None,
    )
