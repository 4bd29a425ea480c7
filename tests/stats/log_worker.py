"""Appends to the log, and applies it as the worker does."""

import asyncio
from typing import Any
from uuid import UUID

from adloom.core.clock import Clock
from adloom.core.ids import BannerId, PlacementId
from adloom.events.erasure import ErasedEntries
from adloom.events.log.event import Impression, LogEvent, encode_event
from adloom.events.log.stream import ValkeyEventLog
from adloom.events.projections.projection import Projection
from adloom.events.projections.retention import LogRetention
from adloom.ops.projections import build_projections, list_projections, read_cursors
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import a_click, an_impression

Json = dict[str, Any]


class LogWorker:
    """Appends to the log, and applies it as the worker does."""

    def __init__(self, pool: Pool, valkey: Valkey, banner: Json, placement: Json) -> None:
        self._ledger = ValkeyEventLog(valkey)
        self._pool = pool
        self._valkey = valkey
        self._listed = list_projections(pool, valkey)
        self._projections = build_projections(self._listed, valkey, consumer="test", incarnation="1")
        self._place: Json = {
            "banner_id": BannerId(UUID(banner["id"])),
            "placement_id": PlacementId(UUID(placement["id"])),
            "campaign_id": None,
        }

    def make_impression(self, name: str, **fields: Any) -> Impression:
        return an_impression(name, **self._place, **fields)

    async def append(self, *names: str, **fields: Any) -> None:
        await self.append_events(*(self.make_impression(name, **fields) for name in names))

    async def append_click(self, name: str, **fields: Any) -> None:
        await self.append_events(a_click(name, **self._place, **fields))

    async def append_events(self, *events: LogEvent) -> None:
        await self._ledger.append([encode_event(event) for event in events])

    async def catch_up(self) -> None:
        stop = asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for projection in self._projections:
                group.create_task(projection.run(stop))
            while any([await self._is_behind(projection) for projection in self._projections]):  # noqa: ASYNC110 - what is waited for is in the servers
                await asyncio.sleep(0.02)
            stop.set()

    async def _is_behind(self, projection: Projection) -> bool:
        return (await self._ledger.measure_lag(projection.name, await projection.read_cursor())).entries > 0

    async def look_after(self, clock: Clock) -> None:
        """Do what the worker does with the log now and then."""
        retention = LogRetention(
            self._ledger,
            lambda: read_cursors(self._listed, self._pool),
            clock=clock,
            sweep=ErasedEntries(self._pool, self._valkey).sweep,
        )
        await retention.check()
