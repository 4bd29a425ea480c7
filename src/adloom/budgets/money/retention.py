"""Removes charges that are older than the operator keeps them, a day at a time, on the worker that leads.

A day whose books do not agree stays. Of a day that is removed its books stay, as they were, and its refunds.
"""

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from adloom.budgets.money.reconcile_store import DayReconciliation, reconcile_day
from adloom.core.clock import Clock
from adloom.runtime.loops import PollLoop, pause
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

CHECK_SECONDS: Final = 600.0
# A clock that jumps ahead for an hour costs a few days of rows, not all.
DAYS_AT_ONCE_MAX: Final = 4
ROWS_AT_ONCE_MAX: Final = 10_000
BETWEEN_SECONDS: Final = 0.05
# The database's clock must agree that the day is old.
_NEXT_DAY: Final = """
    SELECT min(day) FROM money_entries
     WHERE kind <> 'refund' AND day > $1 AND day < least($2::date, (now() AT TIME ZONE 'UTC')::date - $3::integer)
"""
_MARK: Final = """
    INSERT INTO money_days_removed (day, reconciliation, removed_at) VALUES ($1, $2::text::jsonb, $3) ON CONFLICT DO NOTHING
"""
_FIND: Final = "SELECT reconciliation::text, removed_at FROM money_days_removed WHERE day = $1"
_REMOVE: Final = """
    WITH removed AS (
        DELETE FROM money_entries
         WHERE id = ANY (ARRAY(SELECT id FROM money_entries WHERE day = $1 AND kind <> 'refund' LIMIT $2))
        RETURNING id
    )
    SELECT count(*) FROM removed
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RemovedDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day of which no charges are left: its books, and when they were removed."""

    books: DayReconciliation
    removed_at: datetime


async def find_removed_day(connection: Connection, day: date) -> RemovedDay | None:
    row = await connection.fetchrow(_FIND, day)
    if row is None:
        return None
    books = msgspec.json.decode(row["reconciliation"], type=DayReconciliation)
    return RemovedDay(books=books, removed_at=row["removed_at"])


class MoneyRetention:
    """Removes the charges of old days, every ten minutes the next ones."""

    def __init__(self, pool: Pool, clock: Clock, *, kept_days: int, is_leader: Callable[[], bool]) -> None:
        self._pool = pool
        self._clock = clock
        self._kept_days = kept_days
        self._is_leader = is_leader
        self._after = date.min  # Of days before, none is left whose books agreed.
        self.rows = 0  # Read by the metrics.

    async def run(self, stop: asyncio.Event) -> None:
        away = (*POSTGRES_AWAY, TimeoutError)
        remove = partial(self.remove_old, stop)
        await PollLoop(remove, every_seconds=CHECK_SECONDS, away=away, name="old_charges").run(stop)

    async def remove_old(self, stop: asyncio.Event) -> None:
        """Remove the charges of the oldest days, if this worker leads."""
        before, removed = self._clock.now().date() - timedelta(days=self._kept_days), 0
        while removed < DAYS_AT_ONCE_MAX and self._is_leader():
            day = await self._pool.fetchval(_NEXT_DAY, self._after, before, self._kept_days)
            if day is None:
                return
            if await self._mark_removed(day):
                await self._remove(day, stop)
                removed += 1
            if stop.is_set():
                return
            self._after = day

    async def _mark_removed(self, day: date) -> bool:
        """Keep the books of a day, and return whether its rows may go; from then on nothing of it is refunded."""
        async with self._pool.acquire() as connection:
            if await find_removed_day(connection, day) is not None:  # It was interrupted.
                return True
            books = await reconcile_day(connection, day)
            if not books.is_balanced:
                log.error("old_books_disagree", day=str(day), bill=books.bill)
                return False
            await connection.execute(_MARK, day, msgspec.json.encode(books).decode(), self._clock.now())
        return True

    async def _remove(self, day: date, stop: asyncio.Event) -> None:
        removed, rows = 0, ROWS_AT_ONCE_MAX
        while rows == ROWS_AT_ONCE_MAX and not stop.is_set():
            rows = await self._pool.fetchval(_REMOVE, day, ROWS_AT_ONCE_MAX)
            removed += rows
            self.rows += rows
            await pause(BETWEEN_SECONDS, stop)
        log.info("old_charges_removed", day=str(day), rows=removed)
