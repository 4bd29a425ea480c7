"""Reads the counts of campaigns, cheaply enough to ask twice a second for those with caps.

Caps count valid events. An event is at most a day old when it is accepted, so only the counts of the last two
days grow: those are read when a projection has moved, and only for campaigns with caps. The days before are
summed up once, and again if they turn out to have changed, in case a projection was far behind.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adloom.budgets.lifetime_counts import NO_COUNTS, LifetimeCounts
from adloom.runtime.postgres import Connection, Record

GROWING: Final = timedelta(days=1)
EVER: Final = datetime.min.replace(tzinfo=UTC)

# Both only grow: a late event or a correction adds one.
WRITTEN_BEFORE = """
    SELECT coalesce(sum(events), 0)::bigint, coalesce(sum(corrections), 0)::bigint FROM events.event_days
     WHERE day < ($1 AT TIME ZONE 'UTC')::date
"""
COUNTS_BEFORE = """
    SELECT campaign_id, sum(impressions - invalid_impressions)::bigint, sum(clicks - invalid_clicks)::bigint
      FROM events.event_counts
     WHERE hour < $2 AND campaign_id = ANY ($1::integer[]) GROUP BY campaign_id
"""
COUNTS_SINCE = """
    SELECT campaign_id, sum(impressions - invalid_impressions)::bigint, sum(clicks - invalid_clicks)::bigint
      FROM events.event_counts
     WHERE hour >= $2 AND campaign_id = ANY ($1::integer[]) GROUP BY campaign_id
"""


class CapCounts:
    """Counts of campaigns with caps, as of the last read."""

    def __init__(self) -> None:
        self._asked: tuple[frozenset[int], datetime] | None = None
        self._written: Record | None = None
        self._is_doubtful = False
        self._projected: Mapping[str, str] | None = None
        self._settled: dict[int, LifetimeCounts] = {}
        self._read_counts: dict[int, LifetimeCounts] = {}

    def recheck_settled(self) -> None:
        """Check at the next read whether the days before have changed."""
        self._is_doubtful = True

    async def read(
        self,
        connection: Connection,
        campaign_keys: Collection[int],
        now: datetime,
        *,
        projected: Mapping[str, str],
    ) -> dict[int, LifetimeCounts]:
        """Read the counts, unless the cursors of the projections, which were read just before, say that all is known."""
        if not campaign_keys:
            return {}
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        asked = (frozenset(campaign_keys), today - GROWING)
        if asked == self._asked and projected == self._projected and not self._is_doubtful:
            return self._read_counts
        keys, self._projected = list(campaign_keys), None  # If it fails half way, the next read starts over.
        await self._settle(connection, asked)
        recent = await _read_counts(connection, COUNTS_SINCE, keys, asked[1])
        self._read_counts = {
            key: self._settled.get(key, NO_COUNTS) + recent.get(key, NO_COUNTS) for key in keys
        }
        self._projected = projected
        return self._read_counts

    async def _settle(self, connection: Connection, asked: tuple[frozenset[int], datetime]) -> None:
        """Sum up the days before, unless the sum is known to be right."""
        if asked == self._asked and not self._is_doubtful:
            return
        # Read before the sum: a write in between makes the sum doubtful again, not wrong for good.
        written = await connection.fetchrow(WRITTEN_BEFORE, asked[1])
        if asked != self._asked or written != self._written:
            self._settled = await _read_counts(connection, COUNTS_BEFORE, list(asked[0]), asked[1])
        self._asked, self._written, self._is_doubtful = asked, written, False


async def read_counts(connection: Connection, keys: Sequence[int]) -> dict[int, LifetimeCounts]:
    return await _read_counts(connection, COUNTS_SINCE, keys, EVER)


async def _read_counts(
    connection: Connection, query: str, keys: Sequence[int], hour: datetime
) -> dict[int, LifetimeCounts]:
    return {key: LifetimeCounts(*counts) for key, *counts in await connection.fetch(query, keys, hour)}
