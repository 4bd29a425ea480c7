"""Compares the money ledger with what campaigns and advertisers say, every minute, on the worker that leads."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Final

import msgspec
import structlog

from adloom.budgets.addresses import ADVERTISER
from adloom.budgets.money.reconcile_store import DIFFERENCES_MAX, DayReconciliation, reconcile_day
from adloom.core.clock import Clock
from adloom.core.money import Micros
from adloom.runtime.loops import pause
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool

COMPARE_SECONDS: Final = 60.0
# After books that took long to read, the wait is so many times as long: reading them stays a small part of the load.
REST_TIMES: Final = 20
# An advertiser gets a charge a moment after its campaign has stored it, and a report may have to be repeated.
TRIES: Final = 4
RETRY_SECONDS: Final = 1.0
# The hours by which days of time zones begin after and before those of UTC.
ZONE_HOURS: Final = (-12, 0, 14)
NAMED_MAX: Final = 3

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def reconcile_settled(
    connection: Connection, day: date, *, retry_seconds: float = RETRY_SECONDS
) -> DayReconciliation:
    """Reconcile a day; where it does not balance, again after charges on their way have arrived."""
    results = [await reconcile_day(connection, day)]
    while not (found := settle(results)).is_balanced and len(results) < TRIES:
        await asyncio.sleep(retry_seconds)
        results.append(await reconcile_day(connection, day))
    return found


def settle(results: Sequence[DayReconciliation]) -> DayReconciliation:
    """Return the last result, without differences of advertisers that agreed in an earlier one.

    Under steady charges there is no moment at which every advertiser knows of all its charges. Campaigns keep their totals
    together with the charges, so they always agree.
    """
    last = results[-1]
    complete = [result.differences for result in results[:-1] if len(result.differences) < DIFFERENCES_MAX]
    disagreeing = [{one.id for one in differences} for differences in complete]
    arriving = [
        one
        for one in last.differences
        if one.kind == ADVERTISER and any(one.id not in ids for ids in disagreeing)
    ]
    return msgspec.structs.replace(
        last,
        differences=tuple(one for one in last.differences if one not in arriving),
        arriving=Micros(sum(one.charged - one.reported for one in arriving)),
    )


def list_open_days(now: datetime) -> list[date]:
    """List the days that are today in some time zone."""
    return sorted({(now + timedelta(hours=hours)).date() for hours in ZONE_HOURS})


class LedgerCheck:
    """What was found when the books were last compared. A day that is over is not looked at again."""

    def __init__(
        self,
        pool: Pool,
        clock: Clock,
        *,
        is_leader: Callable[[], bool],
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._is_leader = is_leader
        self._retry_seconds = retry_seconds
        self.wrong_days: tuple[date, ...] = ()
        # Read by the metrics.
        self.comparisons = 0
        self.seconds = 0.0  # How long the last one took.

    @property
    def problem(self) -> str | None:
        """What is wrong, in words; None where the books agree."""
        if not self.wrong_days:
            return None
        return f"the books of {', '.join(str(day) for day in self.wrong_days)} do not agree"

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(max(COMPARE_SECONDS, REST_TIMES * self.seconds), stop)
            if not stop.is_set():
                await self._try_to_compare()

    async def _try_to_compare(self) -> None:
        if not self._is_leader():
            self.wrong_days, self.seconds = (), 0.0  # Another worker says what it finds.
            return
        try:
            await self.compare()
        except (*POSTGRES_AWAY, TimeoutError) as error:
            log.warning("books_not_compared", reason=repr(error))
        except Exception:
            # The outermost loop: money is kept whether it is looked at or not.
            log.exception("books_comparison_failed")

    async def compare(self) -> None:
        """Compare the books of the days that are today somewhere."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        async with self._pool.acquire() as connection:
            found = [
                await reconcile_settled(connection, day, retry_seconds=self._retry_seconds)
                for day in list_open_days(self._clock.now())
            ]
        self.seconds = loop.time() - began_at
        self.comparisons += 1
        wrong = [one for one in found if not one.is_balanced]
        for one in wrong:
            if one.day not in self.wrong_days:
                differences = [f"{it.kind} {it.id}" for it in one.differences[:NAMED_MAX]]
                log.error("books_disagree", day=str(one.day), bill=one.bill, differences=differences)
        self.wrong_days = tuple(one.day for one in wrong)
