"""Asking the event tables what became of entries: look-ups by index, one query a kind."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from adloom.core.errors import UnavailableError
from adloom.ledger.event import Auctioned, Click, Impression, Served, happened_at
from adloom.ledger.followers.counted import Counted
from adloom.ledger.ports import Record, UnfoldableError
from adloom.ledger.stream import entry_order
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool
from adloom.runtime.postgres import Record as Row

# Partitions that were empty a moment ago have no statistics: a plan that reads a day from end to end
# for each batch must not be thinkable.
BY_INDEX: Final = "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
# A row is in the partition of its own event's day, so the days that the batch is of are all that is looked into.
_ROWS: Final = """
    SELECT entry_ms, entry_seq, user_id, marks, is_valid FROM events.{table}
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at BETWEEN $2 AND $3
"""
IMPRESSIONS: Final = _ROWS.format(table="banner_impressions")
CLICKS: Final = _ROWS.format(table="banner_clicks")
ERASED: Final = "SELECT user_id, erased_at FROM erased_users WHERE user_id = ANY ($1::uuid[])"

E = TypeVar("E", Impression, Click)
Offered: TypeAlias = Served | Auctioned
Rows: TypeAlias = dict[tuple[int, int], Row]


class CountedEvents:
    """The event tables, as those who follow them see them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def counted(self, records: Sequence[Record]) -> list[Counted]:
        """Give the entries that counted, in their order; offers and auctions all do."""
        happenings = [record.happening for record in records]
        async with _connection(self._pool) as connection:
            impressions = await _rows(connection, IMPRESSIONS, happenings, Impression)
            clicks = await _rows(connection, CLICKS, happenings, Click)
            erased = await _erased(connection, happenings)
        found: list[Counted] = []
        for entry_id, happening in records:
            if isinstance(happening, Offered):
                found.append(Counted(entry_id, happening, _still_given(happening, erased)))
                continue
            rows = impressions if isinstance(happening, Impression) else clicks
            if row := rows.get(entry_order(entry_id)):
                marks = tuple(row["marks"] or ())
                found.append(Counted(entry_id, happening, row["user_id"], marks, row["is_valid"]))
        return found


async def _rows(connection: Connection, query: str, happenings: Sequence[object], kind: type[E]) -> Rows:
    events = [one for one in happenings if isinstance(one, kind)]
    if not events:
        return {}
    moments = [event.occurred_at for event in events]
    # No text of the tables has a NUL in it, and the server would refuse to look for one.
    ids = list({event.correlation_id for event in events if "\0" not in event.correlation_id})
    rows = await connection.fetch(query, ids, min(moments), max(moments))
    return {(row["entry_ms"], row["entry_seq"]): row for row in rows}


async def _erased(connection: Connection, happenings: Sequence[object]) -> Mapping[UUID, datetime]:
    users = {one.user_id for one in happenings if isinstance(one, Offered) and one.user_id}
    if not users:
        return {}
    return {row["user_id"]: row["erased_at"] for row in await connection.fetch(ERASED, list(users))}


def _still_given(offer: Offered, erased: Mapping[UUID, datetime]) -> UUID | None:
    """Tell for whom an offer was made, unless that was before the user was erased."""
    if offer.user_id is None:
        return None
    erased_at = erased.get(offer.user_id)
    return offer.user_id if erased_at is None or happened_at(offer) > erased_at else None


@asynccontextmanager
async def _connection(pool: Pool) -> AsyncGenerator[Connection]:
    try:
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            await connection.execute(BY_INDEX)
            yield connection
    except (asyncpg.DataError, ValueError) as error:  # What no table holds, as event_tables found before us.
        raise UnfoldableError(repr(error)) from error
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"The database does not say what has counted: {error!r}") from error
