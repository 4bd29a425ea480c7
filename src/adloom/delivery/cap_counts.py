"""Reads what campaigns with caps have had so far, cheaply enough to ask twice a second.

Events are at most a day old when they are accepted, so only the last days' counts grow: those are
asked for when the projection has moved, and only for campaigns with caps. The days before are summed
up once, and again with every rebuild of the index, in case a projection was far behind.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from adloom.delivery.caps import NONE_YET, Counts
from adloom.delivery.rows import Caps
from adloom.runtime.postgres import Connection

GROWING: Final = timedelta(days=2)

PROJECTED = "SELECT entry_id FROM projection_cursors ORDER BY projection"
COUNTS_BEFORE = """
    SELECT campaign_id, sum(impressions)::bigint, sum(clicks)::bigint FROM event_counts
     WHERE day < $2 AND campaign_id = ANY ($1::integer[]) GROUP BY campaign_id
"""
COUNTS_SINCE = """
    SELECT campaign_id, sum(impressions)::bigint, sum(clicks)::bigint FROM event_counts
     WHERE day >= $2 AND campaign_id = ANY ($1::integer[]) GROUP BY campaign_id
"""


class CapCounts:
    """Counts of campaigns with caps, as of the last look."""

    def __init__(self) -> None:
        self._asked: tuple[frozenset[int], date] | None = None
        self._projected: list[str] = []
        self._settled: dict[int, Counts] = {}
        self._counts: dict[int, Counts] = {}

    def forget(self) -> None:
        """Sum everything up again at the next look."""
        self._asked = None

    async def look(
        self, connection: Connection, caps: Mapping[int, Caps], now: datetime
    ) -> dict[int, Counts]:
        """Tell the counts of all campaigns with caps."""
        if not caps:
            return {}
        asked = (frozenset(caps), now.date() - GROWING)
        projected = [row[0] for row in await connection.fetch(PROJECTED)]
        if asked == self._asked and projected == self._projected:
            return self._counts
        keys = list(caps)
        if asked != self._asked:
            self._settled = await _counts(connection, COUNTS_BEFORE, keys, asked[1])
        recent = await _counts(connection, COUNTS_SINCE, keys, asked[1])
        self._counts = {key: self._settled.get(key, NONE_YET).plus(recent.get(key, NONE_YET)) for key in keys}
        self._asked, self._projected = asked, projected
        return self._counts


async def counts_of(connection: Connection, keys: Sequence[int]) -> dict[int, Counts]:
    """Tell what some campaigns have had in their lives."""
    return await _counts(connection, COUNTS_SINCE, keys, date.min)


async def _counts(connection: Connection, query: str, keys: Sequence[int], day: date) -> dict[int, Counts]:
    return {key: Counts(*counts) for key, *counts in await connection.fetch(query, keys, day)}
