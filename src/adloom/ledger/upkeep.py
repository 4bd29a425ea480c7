"""Looking after the ledger: how far its readers are behind, and forgetting what is old and read."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.ledger.stream import Lag, entry_order

LOOK_SECONDS: Final = 5.0
RETENTION: Final = timedelta(days=7)  # What a rebuilt projection can be read again from.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class LedgerUpkeep(Protocol):
    """What can be asked of a ledger beside reading it."""

    async def lag(self, cursor: str) -> Lag:
        """Tell how far a cursor is behind."""
        ...

    async def trim(self, before: str) -> int:
        """Forget entries before an id."""
        ...


def trim_before(cursors: Sequence[str], *, now: datetime, retention: timedelta) -> str | None:
    """Choose the entry before which nobody needs the ledger: read by all, and older than the retention."""
    if not cursors:
        return None
    oldest_kept = f"{int((now - retention).timestamp() * 1000)}-0"
    return min(*cursors, oldest_kept, key=entry_order)


class Upkeep:
    """Looks at the ledger now and then; `lag` is of the slowest reader, as it was at the last look."""

    def __init__(
        self,
        ledger: LedgerUpkeep,
        cursors: Callable[[], Awaitable[Sequence[str]]],
        *,
        clock: Clock,
        retention: timedelta = RETENTION,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._ledger = ledger
        self._cursors = cursors
        self._clock = clock
        self._retention = retention
        self._look_seconds = look_seconds
        self.lag = Lag(entries=0, seconds=0.0)
        self.trimmed = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again until told to stop."""
        while not stop.is_set():
            try:
                await self.look()
            except UnavailableError as error:
                log.warning("ledger_upkeep_waits", reason=error.detail)
            except Exception:
                log.exception("ledger_upkeep_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await stop.wait()

    async def look(self) -> None:
        """Measure the lag and forget what nobody needs."""
        cursors = await self._cursors()
        before = trim_before(cursors, now=self._clock.now(), retention=self._retention)
        if before is None:
            return
        self.lag = await self._ledger.lag(min(cursors, key=entry_order))
        self.trimmed += await self._ledger.trim(before)
