"""Rolls a day's events up into `banner_stats`, and finds the days that need it.

A day is rolled up on the night after it. Later events make it stale, and a stale day is rolled up again; until
then its statistics are read from the live counts, which always have every event. So a rollup may be late, run
twice, or not at all: the figures are the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Final, Protocol

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import CommandError
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob, Pause, pause
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import VALKEY_AWAY
from adloom.stats import rollup_store
from adloom.stats.rollup_store import CLICKS, IMPRESSIONS, DayFound

ROLLUP_STATS: Final = "banner.rollup_stats"
JOB_ID_PREFIX: Final = "banner-rollup-"
ISO_DAY_LENGTH: Final = len("2026-11-15")
ONE_DAY: Final = timedelta(days=1)

# 128 MiB of rows, about half a million events: a second of work, after which progress is reported.
BATCH_BLOCKS: Final = 16_384
POLL_EVERY: Final = timedelta(minutes=1)
# Late events may trickle in all day, and a large day takes a while: do not roll it up again and again.
REST: Final = timedelta(minutes=10)
# An outage may outlast all attempts of a job; its day is tried again later.
DEAD_REST: Final = timedelta(hours=1)
# Jobs of every minute go first: a month of stale days must not hold them up.
BEHIND_ALL_OTHERS: Final = 10

log: structlog.stdlib.BoundLogger = structlog.get_logger()

OnProgress = Callable[[float], None]


class RollupRefusedError(CommandError):
    """A day cannot be rolled up; the message says why and what to do."""


class DayDroppedError(RollupRefusedError):
    """The rows of a day are gone."""


class RolledDay(msgspec.Struct, frozen=True, kw_only=True):
    """A finished rollup: the events it read, and the rows it wrote."""

    day: date
    events: int
    rows: int
    seconds: float


class TakesJobs(Protocol):
    """Takes jobs."""

    async def put(self, name: str, *, job_id: str, priority: int = 0) -> None:
        """Add a job, unless one with this id was added before."""
        ...

    async def retry(self, job_id: str, *, died_before: datetime | None = None) -> bool:
        """Retry a job that ran out of attempts before a moment."""
        ...


def name_nightly_job(moment: datetime) -> str:
    return f"{JOB_ID_PREFIX}{moment.date() - ONE_DAY}"


def name_stale_job(day: date, version: int) -> str:
    """Return the id of a day's rollup as of now: another number of events gives another id."""
    return f"{JOB_ID_PREFIX}{day}-{version}"


def parse_job_id(job_id: str) -> tuple[date, bool]:
    """Parse a job's id into its day, and whether to roll up only if stale."""
    named = job_id.removeprefix(JOB_ID_PREFIX)
    return date.fromisoformat(named[:ISO_DAY_LENGTH]), len(named) > ISO_DAY_LENGTH


def make_rollup_job(cron: Cron) -> CronJob:
    return CronJob(name=ROLLUP_STATS, cron=cron, job_id=name_nightly_job)


def split_blocks(found: DayFound, batch_blocks: int) -> Iterator[tuple[str, range, float]]:
    """Split a day's blocks into batches; each comes with the share of the day that is done after it."""
    total = found.impression_blocks + found.click_blocks
    done = 0
    for kind, count in ((IMPRESSIONS, found.impression_blocks), (CLICKS, found.click_blocks)):
        for first in range(0, count, batch_blocks):
            blocks = range(first, min(first + batch_blocks, count))
            done += len(blocks)
            yield kind, blocks, done / total


class StaleDays:
    """Finds days whose statistics lack events, and has them rolled up again."""

    def __init__(
        self, pool: Pool, queue: TakesJobs, cron: Cron, clock: Clock, *, pause: Pause = pause
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._cron = cron
        self._clock = clock
        self._pause = pause
        # As of the last check, for a collector.
        self.count = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Check every minute until stopped."""
        while not stop.is_set():
            await self.check()
            await self._pause(POLL_EVERY, stop)

    async def check(self) -> None:
        """Add a job for each stale day that is over; while a server is away, the next check will do."""
        try:
            await self._put_stale()
        except (*POSTGRES_AWAY, *VALKEY_AWAY) as error:
            log.warning("stale_days_not_looked_for", error=repr(error))

    async def _put_stale(self) -> None:
        now = self._clock.now()
        night = self._cron.find_latest_until(now).date()
        stale = await rollup_store.read_stale_days(self._pool, before=night, quiet_since=now - REST)
        self.count = len(stale)
        for one in stale:
            if one.is_due:
                job_id = name_stale_job(one.day, one.version)
                await self._queue.put(ROLLUP_STATS, job_id=job_id, priority=BEHIND_ALL_OTHERS)
                await self._queue.retry(job_id, died_before=now - DEAD_REST)


class Rollup:
    """Rebuilds the statistics of days, for a job or a command."""

    def __init__(
        self,
        pool: Pool,
        clock: Clock,
        *,
        then: Callable[[], Awaitable[None]] | None = None,
        batch_blocks: int = BATCH_BLOCKS,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._then = then
        self._batch_blocks = batch_blocks
        # Plain figures, read by a collector: number of days, and seconds of the last one.
        self.days = 0
        self.seconds = 0.0

    async def handle(self, job: JobAttempt) -> None:
        """Roll up the day that the job names, then look for others that need it."""
        day, only_if_stale = parse_job_id(job.id)
        try:
            rolled = await self.roll_up(day, only_if_stale=only_if_stale)
        except DayDroppedError as error:  # It waited too long, and another attempt would not help.
            log.warning("rollup_refused", day=day.isoformat(), reason=str(error))
        else:
            if rolled is not None:
                log.info("rollup_finished", **msgspec.to_builtins(rolled))
        if self._then is not None:
            await self._then()

    async def roll_up(
        self, day: date, *, only_if_stale: bool = False, on_progress: OnProgress = lambda _: None
    ) -> RolledDay | None:
        """Rebuild a day's statistics from its rows, all or nothing; None where nothing was to be done."""
        started_at = self._clock.now()
        async with rollup_store.open_day(self._pool, day) as connection:
            found = await rollup_store.find_day(connection, day)
            if only_if_stale and found.is_fresh:
                return None
            if found.is_dropped:
                raise _make_dropped_error(day)
            await rollup_store.make_stage(connection)
            for kind, blocks, share in split_blocks(found, self._batch_blocks):
                await rollup_store.stage(connection, day, kind, blocks)
                on_progress(share)
            _compare(day, found, await rollup_store.stage_events(connection))
            rows = await rollup_store.overwrite(connection, day, found, now=self._clock.now())
        seconds = (self._clock.now() - started_at).total_seconds()
        self.days += 1
        self.seconds = seconds
        return RolledDay(day=day, events=found.events, rows=rows, seconds=seconds)


def _compare(day: date, found: DayFound, staged: int) -> None:
    """Refuse rows whose number is not what was counted: the tables were replaced meanwhile, or are damaged."""
    if staged != found.events:
        raise RollupRefusedError(
            f"{day} has {staged} events in its rows, but {found.events} in its counts, so it was left as it was."
            " Try it again; if it stays so, `adloom ledger replay --projection event_tables` counts again."
        )


async def refuse_dropped(pool: Pool, first: date, last: date) -> None:
    """Raise DayDroppedError where rows of the range were dropped; both days are included."""
    if dropped := await rollup_store.find_dropped_days(pool, first, last):
        raise _make_dropped_error(dropped[0], dropped[-1])


def _make_dropped_error(first: date, last: date | None = None) -> DayDroppedError:
    days = f"{first}" if last in {None, first} else f"{first} to {last}"
    return DayDroppedError(
        f"The rows of {days} were dropped (ADLOOM_EVENT_RETENTION_DAYS), so there is nothing to roll up from;"
        f" what was rolled up before stays. Begin with --from {(last or first) + ONE_DAY}."
    )
