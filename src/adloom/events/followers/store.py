"""Asking the event tables what became of entries: look-ups by index, one query a kind, of what is not known here."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from adloom.core.errors import UnavailableError
from adloom.events.followers.counted import CountedEntry
from adloom.events.followers.recent_counted import RecentCounted
from adloom.events.log.entry import parse_entry_id
from adloom.events.log.event import Click, Impression, Unsold, get_event_time
from adloom.events.ports import DecodedEntry, PoisonEntryError
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
Rows: TypeAlias = dict[tuple[int, int], Row]


class CountedStore:
    """The event tables, as those who follow them see them; who is in the process that writes them asks for little."""

    def __init__(self, pool: Pool, recent_counted: RecentCounted | None = None) -> None:
        self._pool = pool
        self._recent = recent_counted or RecentCounted()

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        """Give the entries that counted, in their order; offers and auctions all do."""
        known, unknown = self._known(records)
        users = {one.user_id.int: one.user_id for one in known.values() if one.user_id is not None}
        if users or unknown:
            async with _connection(self._pool) as connection:
                known |= await _looked_up(connection, unknown)
                erased_at = await _erased(connection, users)
            known |= {
                entry_id: msgspec.structs.replace(one, user_id=None)
                for entry_id, one in (known.items() if erased_at else ())
                if _is_erased(one, erased_at)
            }
        return [one for entry_id, _ in records if (one := known.get(entry_id)) is not None]

    def _known(self, records: Sequence[DecodedEntry]) -> tuple[dict[str, CountedEntry], list[DecodedEntry]]:
        """Tell what counted without asking, and what is to be looked up; of the rest it is known that it did not."""
        known: dict[str, CountedEntry] = {}
        unknown: list[DecodedEntry] = []
        recent_counted = self._recent.get
        for record in records:
            entry_id, happening = record
            if isinstance(happening, Impression):
                if (one := recent_counted(entry_id)) is not None:
                    known[entry_id] = one
                elif not self._recent.covers(entry_id):
                    unknown.append(record)
            elif isinstance(happening, Click):
                unknown.append(record)
            elif not isinstance(happening, Unsold):
                known[entry_id] = CountedEntry(entry_id, happening, happening.user_id)
        return known, unknown


async def _looked_up(connection: Connection, records: Sequence[DecodedEntry]) -> dict[str, CountedEntry]:
    if not records:
        return {}
    happenings = [record.happening for record in records]
    async with connection.transaction(readonly=True):
        await connection.execute(BY_INDEX)
        impressions = await _rows(connection, IMPRESSIONS, happenings, Impression)
        clicks = await _rows(connection, CLICKS, happenings, Click)
    found: dict[str, CountedEntry] = {}
    for entry_id, happening in records:
        rows = impressions if isinstance(happening, Impression) else clicks
        if row := rows.get(parse_entry_id(entry_id)):
            marks = tuple(row["marks"] or ())
            found[entry_id] = CountedEntry(entry_id, happening, row["user_id"], marks, row["is_valid"])
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


async def _erased(connection: Connection, users: Mapping[int, UUID]) -> Mapping[UUID, datetime]:
    if not users:
        return {}
    rows = await connection.fetch(ERASED, list(users.values()))
    return {row["user_id"]: row["erased_at"] for row in rows}


def _is_erased(counted: CountedEntry, erased_at: Mapping[UUID, datetime]) -> bool:
    """Tell whether a user was erased after this was heard of; of a row that was asked for the tables have told it."""
    if counted.user_id is None or (at := erased_at.get(counted.user_id)) is None:
        return False
    return get_event_time(counted.happening) <= at


@asynccontextmanager
async def _connection(pool: Pool) -> AsyncGenerator[Connection]:
    try:
        async with pool.acquire() as connection:
            yield connection
    except (asyncpg.DataError, ValueError) as error:  # What no table holds, as event_tables found before us.
        raise PoisonEntryError(repr(error)) from error
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"The database does not say what has counted: {error!r}") from error
