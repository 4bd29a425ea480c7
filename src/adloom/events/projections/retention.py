"""Retention of the event log: measures how far projections are behind, and trims what is old and applied by all."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import parse_entry_id
from adloom.events.log.stream import EventLogSize, Lag
from adloom.runtime.loops import pause

LOOK_SECONDS: Final = 5.0
RETENTION: Final = timedelta(days=7)  # How far back a projection can be rebuilt from.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RetainedLog(Protocol):
    """The log, as retention needs it."""

    async def measure_lag(self, projection: str, cursor: str) -> Lag: ...

    async def trim(self, before: str) -> int: ...

    async def measure_size(self) -> EventLogSize: ...


def trim_before(cursors: Iterable[str], *, now: datetime, retention: timedelta) -> str | None:
    """Return the entry before which the log is not needed: applied by all, and older than the retention."""
    slowest = min(cursors, key=parse_entry_id, default=None)
    if slowest is None:
        return None
    oldest_kept = f"{int((now - retention).timestamp() * 1000)}-0"
    return min(slowest, oldest_kept, key=parse_entry_id)


class LogRetention:
    """Checks the log now and then; its figures are those of the last check.

    `sweep` removes what the log must not keep, up to an entry that all projections have applied.
    """

    def __init__(  # noqa: PLR0913 - settings, each with its default
        self,
        event_log: RetainedLog,
        cursors: Callable[[], Awaitable[Mapping[str, str]]],
        *,
        clock: Clock,
        retention: timedelta = RETENTION,
        sweep: Callable[[str], Awaitable[None]] | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._event_log = event_log
        self._cursors = cursors
        self._clock = clock
        self._retention = retention
        self._sweep = sweep
        self._look_seconds = look_seconds
        self.lags: Mapping[str, Lag] = {}
        self.size = EventLogSize()
        self.trimmed = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.check()
            except UnavailableError as error:
                log.warning("ledger_upkeep_waits", reason=error.detail)
            except Exception:
                log.exception("ledger_upkeep_failed")
            await pause(self._look_seconds, stop)

    async def check(self) -> None:
        cursors = await self._cursors()
        self.lags = {
            name: await self._event_log.measure_lag(name, cursor) for name, cursor in cursors.items()
        }
        before = trim_before(cursors.values(), now=self._clock.now(), retention=self._retention)
        if before is not None:
            self.trimmed += await self._event_log.trim(before)
        if self._sweep is not None and cursors:
            await self._sweep(min(cursors.values(), key=parse_entry_id))
        self.size = await self._event_log.measure_size()
