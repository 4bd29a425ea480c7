"""Retention of the event log: measures how far projections are behind, and trims what is applied by all.

It is trimmed by age, and sooner if Valkey runs short of memory.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import parse_entry_id
from adloom.events.log.stream import EventLogSize, Lag, MemoryUse
from adloom.runtime.loops import pause

POLL_SECONDS: Final = 5.0
POLL_SELDOM_TIMES: Final = 3  # As long, while nothing is appended and all is applied.
POLL_SOON_SECONDS: Final = 0.5  # While memory is short.
LOG_PERCENT_MAX: Final = 50  # Of Valkey's memory, for the log.
USED_PERCENT_MAX: Final = 70  # Of Valkey's memory, for everything. Beyond, the log gives way.
SLACK_PERCENT: Final = 5  # So much more is trimmed, so that it is not done again at once.
TRIM_ENTRIES: Final = 200  # In a call: the server does nothing else meanwhile.
TRIM_CALLS_MAX: Final = 500
RETENTION: Final = timedelta(days=7)  # How far back a projection can be rebuilt from.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RetainedLog(Protocol):
    """The log, as retention needs it."""

    async def measure_lag(self, projection: str, cursor: str) -> Lag: ...

    async def trim(self, before: str, count_max: int) -> int: ...

    async def measure_memory(self) -> MemoryUse: ...

    async def measure_size(self) -> EventLogSize: ...


def trim_before(cursors: Iterable[str], *, now: datetime, retention: timedelta) -> str | None:
    """Return the entry before which the log is not needed: applied by all, and older than the retention."""
    slowest = min(cursors, key=parse_entry_id, default=None)
    if slowest is None:
        return None
    oldest_kept = f"{int((now - retention).timestamp() * 1000)}-0"
    return min(slowest, oldest_kept, key=parse_entry_id)


def count_in_excess(size: EventLogSize, memory: MemoryUse) -> int:
    """Return how many of the oldest entries are to go, so that the log and all of Valkey are within their bounds."""
    percent = memory.limit_bytes // 100
    if percent == 0 or size.memory_bytes == 0:
        return 0
    excess = max(
        size.memory_bytes - LOG_PERCENT_MAX * percent, memory.used_bytes - USED_PERCENT_MAX * percent
    )
    if excess <= 0:
        return 0
    return min(size.entries, math.ceil(size.entries * (excess + SLACK_PERCENT * percent) / size.memory_bytes))


class LogRetention:
    """Checks the log now and then; its figures are those of the last check.

    `sweep` removes what the log must not keep, up to an entry that all projections have applied; `spare` frees other
    memory.
    """

    def __init__(  # noqa: PLR0913 - settings, each with its default
        self,
        event_log: RetainedLog,
        cursors: Callable[[], Awaitable[Mapping[str, str]]],
        *,
        clock: Clock,
        retention: timedelta = RETENTION,
        sweep: Callable[[str], Awaitable[None]] | None = None,
        spare: Callable[[MemoryUse], Awaitable[None]] | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._event_log = event_log
        self._cursors = cursors
        self._clock = clock
        self._retention = retention
        self._sweep = sweep
        self._spare = spare
        self._poll_soon = False
        self._is_at_rest = False
        self._trimmed_before: str | None = None
        self._poll_seconds = poll_seconds
        self.lags: Mapping[str, Lag] = {}
        self.size = EventLogSize()
        self.trimmed = 0
        self.trimmed_for_memory = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._poll_soon = self._is_at_rest = False
            try:
                await self.check()
            except UnavailableError as error:
                log.warning("ledger_upkeep_waits", reason=error.detail)
            except Exception:
                log.exception("ledger_upkeep_failed")
            seconds = self._poll_seconds * (POLL_SELDOM_TIMES if self._is_at_rest else 1)
            await pause(min(POLL_SOON_SECONDS, seconds) if self._poll_soon else seconds, stop)

    async def check(self) -> None:
        cursors = await self._cursors()
        # Projections that are equally far, as all are at rest, are equally far behind.
        lags = {
            cursor: await self._event_log.measure_lag(name, cursor)
            for cursor, name in {cursor: name for name, cursor in cursors.items()}.items()
        }
        self.lags = {name: lags[cursor] for name, cursor in cursors.items()}
        minute = self._clock.now().replace(second=0, microsecond=0)
        before = trim_before(cursors.values(), now=minute, retention=self._retention)
        if before is not None and before != self._trimmed_before:
            await self._trim(before)
        entries, self.size = self.size.entries, await self._event_log.measure_size()
        self._is_at_rest = entries == self.size.entries and not any(lag.entries for lag in self.lags.values())
        memory = await self._event_log.measure_memory()
        if cursors:
            applied = min(cursors.values(), key=parse_entry_id)
            await self._trim_excess(applied, count_in_excess(self.size, memory))
            if self._sweep is not None:
                await self._sweep(applied)
        if self._spare is not None:
            await self._spare(memory)

    async def _trim_excess(self, applied: str, excess: int) -> None:
        """Trim before its time what all projections have applied; a rebuild begins later then."""
        if excess:
            gone = await self._trim(applied, excess)
            self._poll_soon = True
            self.trimmed_for_memory += gone
            log.warning("ledger_trimmed_for_memory", entries=gone, wanted=excess)

    async def _trim(self, before: str, count_max: float = math.inf) -> int:
        """Trim the oldest entries before one, about so many, or what a check has time for; return how many."""
        gone = 0
        for _ in range(TRIM_CALLS_MAX):
            if gone >= count_max:
                break
            trimmed = await self._event_log.trim(before, int(min(TRIM_ENTRIES, count_max - gone)))
            if trimmed == 0:
                self._trimmed_before = before
                break
            gone += trimmed
        self.trimmed += gone
        return gone
