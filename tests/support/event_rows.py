"""Rows of the event tables, inserted by SQL; a test names only what it is about."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from adloom.events.log.event import HARMLESS_MARKS, Mark
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON, Json

_numbers = itertools.count(1)
PLACE = """
    SELECT (SELECT id FROM banners WHERE public_id = $1) AS banner_id,
           (SELECT id FROM placements WHERE public_id = $2) AS placement_id,
           (SELECT id FROM campaigns WHERE public_id = $3) AS campaign_id
"""


class EventRows:
    """Writes impressions and clicks of one banner on one placement."""

    def __init__(self, pool: Pool, banner: Json, placement: Json, campaign: Json | None = None) -> None:
        self._pool = pool
        self._place = [
            UUID(thing["id"]) if thing is not None else None for thing in (banner, placement, campaign)
        ]

    async def impression(self, *marks: Mark, **fields: Any) -> str:
        return await self._insert("banner_impressions", marks, fields)

    async def click(self, *marks: Mark, **fields: Any) -> str:
        return await self._insert("banner_clicks", marks, fields)

    async def _insert(self, table: str, marks: tuple[Mark, ...], fields: dict[str, Any]) -> str:
        """Insert a row, and return its correlation id."""
        place = await self._pool.fetchrow(PLACE, *self._place)
        assert place is not None
        columns: dict[str, Any] = {
            "correlation_id": str(uuid4()),
            **place,
            "occurred_at": NOON,
            "received_at": fields.get("occurred_at", NOON),
            "marks": [mark.value for mark in marks] or None,
            "is_valid": HARMLESS_MARKS.issuperset(marks),
            "entry_ms": next(_numbers),
            "entry_seq": 0,
            **fields,
        }
        occurred_at: datetime = columns["occurred_at"]
        await self._pool.execute("SELECT ensure_event_day('events', $1)", occurred_at.astimezone(UTC).date())
        bound = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        await self._pool.execute(
            f"INSERT INTO events.{table} ({', '.join(columns)}) VALUES ({bound})",  # noqa: S608 - our own names
            *columns.values(),
        )
        return columns["correlation_id"]


def noon(*, days: int = 0, **shift: float) -> datetime:
    return NOON + timedelta(days=days, **shift)
