"""`adloom rollup` and `adloom sync`: some days again, with a bar on a terminal.

Elsewhere there is a line a day or job, and one a second on standard error.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final
from uuid import UUID

from rich.console import Console

from adloom.app.progress import show_progress
from adloom.core.clock import Clock
from adloom.core.errors import CommandError, describe_error
from adloom.runtime.jobs.queue import JobState, ListedJob
from adloom.runtime.postgres import open_pool
from adloom.runtime.schema import raise_if_unusable
from adloom.runtime.settings import Services
from adloom.runtime.valkey import VALKEY_AWAY
from adloom.stats.rollup import RolledDay, Rollup, RollupRefusedError, refuse_dropped
from adloom.sync.jobs import Origin, SyncJob, build_jobs
from adloom.sync.pipeline.entity_store import load_timezones
from adloom.sync.queue import StatsQueue, open_stats_queue
from adloom.sync.scheduler import load_eligible_sellers

DAYS_MAX: Final = 3_660
ONE_DAY: Final = timedelta(days=1)
POOL_SIZE_MAX: Final = 2
POLL_SECONDS: Final = 0.5
# Then a message asks whether a worker runs.
PATIENCE_SECONDS: Final = 15.0


class SyncCommandError(CommandError):
    """What was asked cannot be synced, or not all of it was; the message says why."""


def check_days(first: date, last: date, *, today: date, error: type[Exception]) -> None:
    """Raise what is wrong with a range of days."""
    if last < first:
        raise error(f"--to is {last}, which is before --from {first}.")
    # It may be tomorrow already where an account is, or by a reader's clock.
    if last > today + ONE_DAY:
        raise error(f"--to is {last}, but today is {today} (UTC): nothing has happened then.")
    if (last - first).days >= DAYS_MAX:
        raise error(f"--from {first} --to {last} are more than {DAYS_MAX} days at once.")


async def roll_up(database_url: str, first: date, last: date, clock: Clock, console: Console) -> None:
    """Roll up days one after another, both included; each is replaced whole or not at all."""
    check_days(first, last, today=clock.now().date(), error=RollupRefusedError)
    days = [first + number * ONE_DAY for number in range((last - first).days + 1)]
    with raise_if_unusable(database_url):
        async with open_pool(database_url, size_max=POOL_SIZE_MAX) as pool:
            await refuse_dropped(pool, first, last)
            rollup = Rollup(pool, clock)
            with show_progress("Rolling up", len(days), unit="days", console=console) as work:
                for number, day in enumerate(days):

                    def show(share: float, number: int = number, day: date = day) -> None:
                        work.update(number + share, note=str(day))

                    show(0.0)
                    rolled = await rollup.roll_up(day, on_progress=show)
                    assert rolled is not None, "asked for without conditions"
                    console.print(_describe(rolled), highlight=False)


def _describe(rolled: RolledDay) -> str:
    return f"{rolled.day}  {rolled.events:>13,} events  {rolled.rows:>9,} rows  {rolled.seconds:>7.2f} s"


async def sync(  # noqa: PLR0913 - where, what, and how it is shown
    services: Services,
    first: date,
    last: date,
    *,
    clock: Clock,
    console: Console,
    seller_id: UUID | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Put a job for each seller and level, and follow them to their end."""
    check_days(first, last, today=clock.now().date(), error=SyncCommandError)
    sellers = await _read_sellers(services.database_url, seller_id)
    jobs = [job for seller in sellers for job in build_jobs(seller, first, last, Origin.BACKFILL)]
    try:
        async with open_stats_queue(services.redis_url) as queue:
            put = await queue.put(jobs)
            console.print(f"{put} jobs for {len(sellers)} sellers, {first} to {last}", highlight=False)
            failed = await _Following(queue, console, jobs).run(poll_seconds)
    except VALKEY_AWAY as error:
        raise SyncCommandError(f"The queue cannot be reached: {describe_error(error)}.") from error
    if failed:
        raise SyncCommandError(
            f"{len(failed)} of {len(jobs)} jobs have failed; `adloom jobs retry --queue stats-sync --all` tries them again."
        )


async def _read_sellers(database_url: str, seller_id: UUID | None) -> list[UUID]:
    """Return the one seller that is asked for, or all that can be synced."""
    with raise_if_unusable(database_url):
        async with open_pool(database_url, size_max=1) as pool:
            if seller_id is not None:
                async with pool.acquire() as connection:
                    if await load_timezones(connection, seller_id) is None:
                        raise SyncCommandError(f"There is no seller {seller_id}.")
                return [seller_id]
            sellers = [seller.seller_id for seller in await load_eligible_sellers(pool)]
    if not sellers:
        raise SyncCommandError("There is no seller with an active ad account and a campaign to sync.")
    return sellers


class _Following:
    """Looks at jobs until all of them have ended."""

    def __init__(self, queue: StatsQueue, console: Console, jobs: Sequence[SyncJob]) -> None:
        self._queue = queue
        self._console = console
        self._open = {job.id: 0.0 for job in jobs}
        self._total = len(jobs)
        self._failed: list[ListedJob] = []
        self._seconds_idle = 0.0

    async def run(self, poll_seconds: float) -> list[ListedJob]:
        """Follow the jobs to their end, and return those that failed."""
        with show_progress("Syncing", self._total, unit="jobs", console=self._console) as work:
            while self._open:
                await asyncio.sleep(poll_seconds)
                await self._read_states()
                done = self._total - len(self._open)
                work.update(done + sum(self._open.values()), note=f"{done:,} done")
                self._warn_if_idle(poll_seconds)
        return self._failed

    async def _read_states(self) -> None:
        for job_id in list(self._open):
            seen = await self._queue.find(job_id)
            if seen is None or seen.state is JobState.COMPLETED:  # The queue forgets what was done long ago.
                self._mark_ended(job_id, "done")
            elif seen.state is JobState.FAILED:
                self._failed.append(seen)
                self._mark_ended(job_id, f"failed: {seen.error or 'no reason given'}")
            else:
                if seen.state is JobState.ACTIVE:
                    self._seconds_idle = 0.0
                self._open[job_id] = seen.progress

    def _mark_ended(self, job_id: str, how: str) -> None:
        del self._open[job_id]
        self._seconds_idle = 0.0
        self._console.print(f"{job_id}  {how}", highlight=False)

    def _warn_if_idle(self, seconds: float) -> None:
        is_told = self._seconds_idle >= PATIENCE_SECONDS
        self._seconds_idle += seconds
        if not is_told and self._seconds_idle >= PATIENCE_SECONDS:
            self._console.print(
                "No job has moved for a while: is a worker running? The jobs wait for it; Ctrl-C leaves them there.",
                highlight=False,
            )
