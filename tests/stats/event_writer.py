"""Writes events of banners that were made over the admin API, named by their public ids."""

from typing import Any
from uuid import UUID

from adloom.core.clock import ManualClock
from adloom.runtime.postgres import Pool
from adloom.stats.rollup import Rollup
from tests.stats.event_rows import NOON, EventRow, an_event, insert_events
from tests.support.builders import Json

KEYS = "SELECT public_id, id FROM {table}"


class EventWriter:
    """Writes events into the tables, and rolls up their days on request."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, *events: Json) -> None:
        """Write events into the tables as one batch; each is made by `seen` or `clicked`."""
        keys = {
            noun: {row["public_id"]: row["id"] for row in await self._pool.fetch(KEYS.format(table=table))}
            for noun, table in {
                "banner": "banners",
                "placement": "placements",
                "campaign": "campaigns",
            }.items()
        }
        await insert_events(self._pool, *(_row(event, keys) for event in events))

    async def roll_up(self) -> None:
        """Roll up every day that has events."""
        rollup = Rollup(self._pool, ManualClock(NOON))
        for row in await self._pool.fetch("SELECT day FROM events.event_days"):
            await rollup.roll_up(row["day"])


def seen(banner: Json, placement: Json, campaign: Json | None = None, **fields: Any) -> Json:
    return {"kind": "impressions", "banner": banner, "placement": placement, "campaign": campaign, **fields}


def clicked(banner: Json, placement: Json, campaign: Json | None = None, **fields: Any) -> Json:
    return {**seen(banner, placement, campaign, **fields), "kind": "clicks"}


def _row(event: Json, keys: dict[str, dict[UUID, int]]) -> EventRow:
    named = {noun: event[noun] and of_noun[UUID(event[noun]["id"])] for noun, of_noun in keys.items()}
    return an_event(**{**event, **named})
