"""Maintenance of daily partitions: made ahead of time, dropped when they are old.

A batch makes a partition that is missing, so nothing depends on our being in time.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, LogEntry, parse_entry_id
from adloom.runtime.loops import pause
from adloom.runtime.postgres import POSTGRES_AWAY

POLL_SECONDS: Final = 3600.0
TRY_AGAIN_SECONDS: Final = 60.0
DAYS_AHEAD: Final = 7
# As long as a correlation id is looked up, and a day.
WRITTEN_DAYS_KEPT: Final = 9
# A clock that jumps ahead for an hour costs a few days of rows, not all.
DROPPED_AT_ONCE_MAX: Final = 4

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class RetentionPeriods(msgspec.Struct, frozen=True, kw_only=True):
    """How long rows of events are kept, and how long entries of the log."""

    event_days: int
    ledger_days: int


class DailyPartitions(Protocol):
    """The daily partitions of some tables."""

    async def ensure(self, days: Collection[date]) -> int: ...

    async def drop_old(
        self, *, before: date, kept_days: int, written_before: datetime, count_max: int
    ) -> Sequence[date]:
        """Drop some days that nobody has written into since a time; return which."""
        ...

    async def forget_erased(self, before: datetime) -> int: ...


class LogReader(Protocol):
    """Reads the oldest entry of the log."""

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> Sequence[LogEntry]: ...


class PartitionMaintenance:
    """Maintains partitions every hour, and sooner again after a failure."""

    def __init__(
        self,
        days: DailyPartitions,
        log_reader: LogReader,
        *,
        clock: Clock,
        retention: RetentionPeriods,
        try_again_seconds: float = TRY_AGAIN_SECONDS,
    ) -> None:
        self._days = days
        self._log = log_reader
        self._clock = clock
        self._retention = retention
        self._try_again_seconds = try_again_seconds
        self.made = 0
        self.dropped = 0
        self.failures = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            seconds = POLL_SECONDS
            try:
                await self.check()
            except (*POSTGRES_AWAY, UnavailableError) as error:
                seconds = self._try_again_seconds
                self.failures += 1
                log.warning("event_days_wait", reason=str(error), retry_in_seconds=seconds)
            except Exception:
                seconds = self._try_again_seconds
                self.failures += 1
                log.exception("event_days_failed", retry_in_seconds=seconds)
            await pause(seconds, stop)

    async def check(self) -> None:
        """Make the days to come, drop old ones, and forget erasures that no event on its way can concern."""
        now = self._clock.now()
        today = now.date()
        self.made += await self._days.ensure(
            [today + timedelta(days=ahead) for ahead in range(-1, DAYS_AHEAD + 1)]
        )
        dropped = await self._days.drop_old(
            before=today - timedelta(days=self._retention.event_days),
            kept_days=self._retention.event_days,
            written_before=now - timedelta(days=WRITTEN_DAYS_KEPT),
            count_max=DROPPED_AT_ONCE_MAX,
        )
        if dropped:
            self.dropped += len(dropped)
            log.info("event_days_dropped", days=[str(day) for day in dropped])
        # A machine that was off may have events of any age in its spool; older ones than rows are gone soon.
        read_again_since = now - timedelta(days=max(self._retention.ledger_days, self._retention.event_days))
        await self._days.forget_erased(min(read_again_since, await self._find_log_start(now)))

    async def _find_log_start(self, now: datetime) -> datetime:
        """Return the time of the oldest entry of the log, which is trimmed by the block, not by the entry."""
        for entry in await self._log.read(BEGINNING, count_max=1, wait_seconds=0.001):
            return datetime.fromtimestamp(parse_entry_id(entry.id)[0] / 1000, UTC)
        return now
