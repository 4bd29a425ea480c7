"""Puts crawls on their queue: a job for each that waits or runs, and those that are due by their sites' cron expressions."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Final
from uuid import UUID

import msgspec
from cronsim import CronSim, CronSimError

from adloom.core.clock import Clock
from adloom.core.ids import IdSource, SiteId
from adloom.pages.crawl import store
from adloom.pages.crawl.model import CrawlId, CrawlRunningError
from adloom.runtime.jobs.queue import JobQueue, NewJob, open_queue
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import VALKEY_AWAY
from adloom.schedule.schedule import find_zone

QUEUE: Final = "site-crawls"
CRAWL_SITE: Final = "site.crawl"
# PostgreSQL has what came of crawls.
ENDED_KEPT: Final = 100

# Each restart of a crawler in the middle of a crawl is an attempt.
open_crawl_queue: Final = partial(
    open_queue,
    QUEUE,
    attempts_max=1_000,
    backoff_milliseconds=1_000,
    backoff_type="fixed",
    done_kept=ENDED_KEPT,
    dead_kept=ENDED_KEPT,
)


async def put_crawl(queue: JobQueue, crawl_id: CrawlId) -> None:
    """Put the job of a crawl, unless it waits or runs."""
    await queue.put_again([NewJob(id=crawl_id.hex, name=CRAWL_SITE, data={"crawlId": str(crawl_id)})])


POLL_SECONDS: Final = 15.0
AWAY: Final = (*POSTGRES_AWAY, *VALKEY_AWAY)
# All sites of an installation may name the same hour.
SPREAD: Final = timedelta(minutes=30)
ONE_SECOND: Final = timedelta(seconds=1)

SCHEDULED: Final = """
    SELECT site.public_id AS id, site.cron_schedule, site.timezone,
           greatest(site.created_at, (SELECT max(crawl.created_at) FROM site_crawls AS crawl
                                       WHERE crawl.site_id = site.id)) AS since
      FROM sites AS site LEFT JOIN publishers AS owner ON owner.id = site.publisher_id
     WHERE site.cron_schedule IS NOT NULL AND NOT site.is_suspended AND owner.deleted_at IS NULL
       AND NOT EXISTS (SELECT FROM site_crawls AS crawl
                        WHERE crawl.site_id = site.id AND crawl.state IN ('queued', 'running'))
"""


class ScheduledSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site that is crawled by the clock; `since` is when it was last crawled, or made."""

    id: SiteId
    cron_schedule: str
    timezone: str
    since: datetime


def is_due(site: ScheduledSite, *, now: datetime) -> bool:
    """Whether a moment of the site's schedule has come since it was last crawled.

    The moment is later by up to half an hour, always the same for a site, and by at most half of the time to the next one.
    """
    # A zone that was removed since it was chosen must not keep other sites from their crawls.
    local = now.astimezone(find_zone(site.timezone) or UTC).replace(microsecond=0) + ONE_SECOND
    try:
        past = CronSim(site.cron_schedule, local, reverse=True)
        last, before = next(past).astimezone(UTC), next(past).astimezone(UTC)
    except (CronSimError, StopIteration):
        return False
    moment = last + spread(site.id, min(SPREAD, (last - before) / 2))
    if now < moment:
        # This one is still to come; the one before may not have been made up for.
        moment = before + spread(site.id, min(SPREAD, (last - before) / 2))
    return site.since < moment


def spread(site_id: UUID, width: timedelta) -> timedelta:
    """Return a part of a span of time, by the site's id."""
    share = int.from_bytes(blake2b(site_id.bytes, digest_size=4).digest()) / 2**32
    return timedelta(seconds=int(width.total_seconds() * share))


class CrawlSchedule:
    """Queues the crawls that are due; of several crawlers one does, because a site has one crawl at a time."""

    def __init__(self, pool: Pool, queue: JobQueue, clock: Clock, ids: IdSource) -> None:
        self._pool = pool
        self._queue = queue
        self._clock = clock
        self._ids = ids
        self.started = 0

    async def run(self, stop: asyncio.Event) -> None:
        await PollLoop(self.start_due, every_seconds=POLL_SECONDS, away=AWAY, name="crawl_schedule").run(stop)

    async def start_due(self) -> None:
        now = self._clock.now()
        async with self._pool.acquire() as connection:
            rows = await connection.fetch(SCHEDULED)
        for site in (msgspec.convert(dict(row), ScheduledSite) for row in rows):
            if is_due(site, now=now):
                await self._start(site, now)

    async def _start(self, site: ScheduledSite, now: datetime) -> None:
        crawl_id = CrawlId(self._ids.make())
        async with self._pool.acquire() as connection:
            try:
                await store.create_crawl(connection, crawl_id, site.id, now=now)
            except CrawlRunningError:
                return
        self.started += 1
        await put_crawl(self._queue, crawl_id)
