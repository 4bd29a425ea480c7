"""Looks up in the event tables which entries counted: by index, one query a kind, only what is not known here."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from adloom.events.cursor_store import BY_INDEX, find_erased_users, translate_database_errors
from adloom.events.followers.counted import CountedEntry, RecentCounted
from adloom.events.log.event import Click, Conversion, Impression, Unsold, get_event_time, parse_entry_id
from adloom.events.ports import DecodedEntry
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.postgres import Record as Row

# A row is in the partition of its own event's day, so only the days of the batch are searched.
_ROWS: Final = """
    SELECT entry_ms, entry_seq, user_id, marks, is_valid FROM events.{table}
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at BETWEEN $2 AND $3
"""
IMPRESSIONS: Final = _ROWS.format(table="banner_impressions")
CLICKS: Final = _ROWS.format(table="banner_clicks")
# A conversion has its offer's index, and no partitions; only those of these offers are read.
CONVERSIONS: Final = """
    SELECT entry_ms, entry_seq, NULL::uuid AS user_id, marks, is_counted AS is_valid FROM events.conversions
     WHERE request_id = ANY ($1::uuid[])
"""

# Their rows may change after they were written.
_LOOKED_UP: Final = (Click, Conversion)

E = TypeVar("E", Impression, Click)
Rows: TypeAlias = dict[tuple[int, int], Row]


class CountedStore:
    """The event tables, as their followers see them; in the process that writes them few entries are looked up."""

    def __init__(self, pool: Pool, recent_counted: RecentCounted | None = None) -> None:
        self._pool = pool
        self._recent = recent_counted or RecentCounted()

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        get_recent = self._recent.get
        found = [one for record in records if (one := get_recent(record.entry_id)) is not None]
        if len(found) == len(records) and all(one.user_id is None for one in found):
            return found  # The usual case: no impression has a user who may have been erased.
        known, unknown = self._split_known(records)
        users = {one.user_id.int: one.user_id for one in known.values() if one.user_id is not None}
        if users or unknown:
            with translate_database_errors("The database does not say what has counted"):
                async with self._pool.acquire() as connection:
                    known |= await _look_up(connection, unknown)
                    erased_at = await find_erased_users(connection, users.values())
            known |= {
                entry_id: msgspec.structs.replace(one, user_id=None)
                for entry_id, one in (known.items() if erased_at else ())
                if _is_erased(one, erased_at)
            }
        return [one for record in records if (one := known.get(record.entry_id)) is not None]

    def _split_known(
        self, records: Sequence[DecodedEntry]
    ) -> tuple[dict[str, CountedEntry], list[DecodedEntry]]:
        """Return what is known to have counted, and what to look up; the rest is known not to have counted."""
        known: dict[str, CountedEntry] = {}
        unknown: list[DecodedEntry] = []
        get_recent = self._recent.get
        for record in records:
            entry_id, event = record.entry_id, record.event
            if isinstance(event, Impression):
                if (one := get_recent(entry_id)) is not None:
                    known[entry_id] = one
                elif not self._recent.covers(entry_id):
                    unknown.append(record)
            elif isinstance(event, _LOOKED_UP):
                unknown.append(record)
            elif not isinstance(event, Unsold):
                known[entry_id] = CountedEntry(entry_id, event, event.user_id)
        return known, unknown


async def _look_up(connection: Connection, records: Sequence[DecodedEntry]) -> dict[str, CountedEntry]:
    if not records:
        return {}
    events = [record.event for record in records]
    async with connection.transaction(readonly=True):
        await connection.execute(BY_INDEX)
        impressions = await _fetch_rows(connection, IMPRESSIONS, events, Impression)
        clicks = await _fetch_rows(connection, CLICKS, events, Click)
        conversions = await _fetch_conversions(connection, events)
    found: dict[str, CountedEntry] = {}
    for record in records:
        entry_id, event = record.entry_id, record.event
        rows = conversions if isinstance(event, Conversion) else clicks
        if isinstance(event, Impression):
            rows = impressions
        if row := rows.get(parse_entry_id(entry_id)):
            marks = tuple(row["marks"] or ())
            found[entry_id] = CountedEntry(entry_id, event, row["user_id"], marks, row["is_valid"])
    return found


async def _fetch_rows(connection: Connection, query: str, events: Sequence[object], kind: type[E]) -> Rows:
    chosen = [event for event in events if isinstance(event, kind)]
    if not chosen:
        return {}
    times = [event.occurred_at for event in chosen]
    # No text of the tables has a NUL in it, and the server would refuse to look for one.
    ids = list({event.correlation_id for event in chosen if "\0" not in event.correlation_id})
    rows = await connection.fetch(query, ids, min(times), max(times))
    return {(row["entry_ms"], row["entry_seq"]): row for row in rows}


async def _fetch_conversions(connection: Connection, events: Sequence[object]) -> Rows:
    offers = {event.request_id for event in events if isinstance(event, Conversion)}
    rows = await connection.fetch(CONVERSIONS, list(offers)) if offers else ()
    return {(row["entry_ms"], row["entry_seq"]): row for row in rows}


def _is_erased(counted: CountedEntry, erased_at: Mapping[UUID, datetime]) -> bool:
    """Return whether the user was erased after the event; rows that were looked up are erased already."""
    if counted.user_id is None or (at := erased_at.get(counted.user_id)) is None:
        return False
    return get_event_time(counted.event) <= at
