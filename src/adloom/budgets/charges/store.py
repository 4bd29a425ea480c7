"""How far charges are, and which offers are charged, in PostgreSQL."""

from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import UUID

from adloom.budgets.campaign.seen import Offer
from adloom.events.log.entry import BEGINNING
from adloom.events.log.event import OCCURRED_AGE_MAX
from adloom.events.ports import CursorMovedError
from adloom.events.store_errors import translate_database_errors
from adloom.runtime.postgres import Pool

CURSOR: Final = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
ENSURE_CURSOR: Final = """
    INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, $2) ON CONFLICT (projection) DO NOTHING
"""
MOVE: Final = """
    UPDATE projection_cursors SET entry_id = $3, moved_at = now() WHERE projection = $1 AND entry_id = $2
    RETURNING 1
"""
# The condition is that of the index, word for word.
CHARGED: Final = """
    SELECT request_id, slot FROM money_entries WHERE request_id = ANY ($1::uuid[]) AND request_id IS NOT NULL
"""
# Partitions that were empty a moment ago have no statistics: a plan that reads a day from end to end
# for each batch must not be thinkable.
BY_INDEX: Final = "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
CLICKED: Final = """
    SELECT request_id, slot FROM events.banner_clicks
     WHERE request_id = ANY ($1::uuid[]) AND occurred_at >= $2 AND is_valid
       AND (marks && '{second_impression,second_click}') IS NOT TRUE
"""

_database_errors: Final = partial(translate_database_errors, "The database does not say what is charged")


class ChargeStore:
    """The cursor of charges, and what the tables know of offers."""

    def __init__(self, pool: Pool, *, projection: str) -> None:
        self._pool = pool
        self._projection = projection

    async def read_cursor(self) -> str:
        """Tell the last entry whose charges are durable; at first there is none."""
        with _database_errors():
            cursor: str | None = await self._pool.fetchval(CURSOR, self._projection)
            if cursor is None:
                await self._pool.execute(ENSURE_CURSOR, self._projection, BEGINNING)
                cursor = await self._pool.fetchval(CURSOR, self._projection)
        assert cursor is not None
        return cursor

    async def move(self, after: str, cursor: str) -> None:
        """Move the cursor, or raise CursorMovedError where it is not where it should be."""
        with _database_errors():
            if await self._pool.fetchval(MOVE, self._projection, after, cursor) is None:
                raise CursorMovedError

    async def charged(self, offers: Collection[Offer]) -> set[Offer]:
        """Tell which offers are in the money ledger already, charged or not."""
        return await self._of_requests(CHARGED, offers)

    async def clicked(self, offers: Collection[Offer], *, since: int) -> set[Offer]:
        """Tell which offers have a valid click; `since` is the second of the first of them."""
        # A browser's clock may be wrong by as much as we believe it.
        first = datetime.fromtimestamp(since, UTC) - OCCURRED_AGE_MAX
        return await self._of_requests(CLICKED, offers, first)

    async def _of_requests(self, statement: str, offers: Collection[Offer], *more: object) -> set[Offer]:
        # In their order, which makes looking them up cheaper.
        requests = [UUID(int=number) for number in sorted({number for number, _ in offers})]
        with _database_errors():
            async with self._pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(BY_INDEX)
                rows = await connection.fetch(statement, requests, *more)
        return {offer for row in rows if (offer := (row["request_id"].int, row["slot"])) in offers}
