"""Crawls as jobs: a queue that starts them, on as many sites at once as the process may have.

PostgreSQL has the truth. A crawl that waits or runs there and has no job gets one again, so neither a lost Valkey nor
a killed process loses it.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, cast
from uuid import UUID

import structlog

from adloom.core.errors import UnavailableError
from adloom.pages.crawl import store
from adloom.pages.crawl.crawl import SiteCrawl
from adloom.pages.crawl.model import (
    REASON_CHARACTERS_MAX,
    CrawlId,
    CrawlInterruptedError,
    CrawlPlan,
    CrawlState,
)
from adloom.pages.crawl.schedule import CRAWL_SITE, QUEUE, put_crawl
from adloom.pages.crawl.visit import VisitParts
from adloom.pages.notice import PageNotice, publish_page_notice
from adloom.runtime.jobs.queue import JobQueue, JobState
from adloom.runtime.jobs.worker import Handler, JobAttempt, JobWorker
from adloom.runtime.loops import PollLoop
from adloom.runtime.postgres import POSTGRES_AWAY
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

# A killed process' crawls come back after about this time.
LOCK_SECONDS: Final = 6.0
# Each kill of a process counts; a page that takes every process down with it ends the crawl.
LOST_MAX: Final = 10
RECONCILE_SECONDS: Final = 5.0
OPEN_MAX: Final = 1_000
AWAY: Final = (*POSTGRES_AWAY, *VALKEY_AWAY, UnavailableError, CrawlInterruptedError)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class CrawlRunner:
    """Runs the crawls that the queue names, and puts those that it has lost."""

    def __init__(self, parts: VisitParts, queue: JobQueue, valkey: Valkey) -> None:
        self._parts = parts
        self._queue = queue
        self._valkey = valkey
        self._stop = asyncio.Event()
        # Read by a collector.
        self.running = 0
        self.ended: Counter[str] = Counter()
        self.pages: Counter[str] = Counter()

    @property
    def handlers(self) -> dict[str, Handler]:
        return {CRAWL_SITE: self.handle}

    async def handle(self, job: JobAttempt) -> None:
        """Run a crawl until it ends; what is away, or a stop of this process, lets the job come again."""
        async with self._parts.pool.acquire() as connection:
            plan = await store.read_plan(connection, CrawlId(UUID(job.data["crawlId"])))
            if plan is None or plan.state not in {CrawlState.QUEUED, CrawlState.RUNNING}:
                return
            # Held by this connection: a process that is only slow, and not dead, is not joined by another.
            if not await store.try_lock(connection, plan.key):
                raise CrawlInterruptedError("Another process runs this crawl.")
            self.running += 1
            try:
                state = await self._run(plan)
            finally:
                self.running -= 1
                await store.unlock(connection, plan.key)
        if state is not None:
            self.ended[state.value] += 1

    async def _run(self, plan: CrawlPlan) -> CrawlState | None:
        async def publish_version(version: int) -> None:
            await publish_page_notice(self._valkey, PageNotice(plan.site_id, version))

        try:
            return await SiteCrawl(
                plan, self._parts, self._stop, publish_version=publish_version, pages=self.pages
            ).run()
        except Exception as error:
            if any(isinstance(one, AWAY) for one in _list_leaves(error)):
                raise CrawlInterruptedError(repr(error)) from error
            # A mistake of ours would only be repeated by another attempt.
            log.exception("crawl_broken", site=plan.domain)
            await self._fail(plan, "The crawler has failed; its log says why.")
            return CrawlState.FAILED

    async def run(self, stop: asyncio.Event) -> None:
        """Put jobs for crawls that have none, every few seconds, until stopped."""
        await PollLoop(self.reconcile, every_seconds=RECONCILE_SECONDS, away=AWAY, name="crawls").run(stop)
        self._stop.set()

    async def reconcile(self) -> None:
        async with self._parts.pool.acquire() as connection:
            crawls = await store.list_open(connection, count_max=OPEN_MAX)
        for crawl_id in crawls:
            job = await self._queue.find(crawl_id.hex)
            if job is None or job.state is JobState.COMPLETED:
                await put_crawl(self._queue, crawl_id)
            elif job.state is JobState.FAILED:
                async with self._parts.pool.acquire() as connection:
                    plan = await store.read_plan(connection, crawl_id)
                if plan is not None:
                    await self._fail(
                        plan, f"The crawler gave it up: {job.error or 'it was stopped too often'}."
                    )

    async def _fail(self, plan: CrawlPlan, reason: str) -> None:
        async with self._parts.pool.acquire() as connection:
            progress = await store.read_progress(connection, plan.key)
            await store.finish_crawl(
                connection,
                plan.key,
                CrawlState.FAILED,
                reason[:REASON_CHARACTERS_MAX],
                classified=progress.classified if progress else 0,
                now=self._parts.clock.now(),
            )


def make_worker(handlers: Mapping[str, Handler], redis_url: str, *, sites_at_once: int) -> JobWorker:
    return JobWorker(
        QUEUE,
        redis_url,
        handlers,
        concurrency=sites_at_once,
        lock_seconds=LOCK_SECONDS,
        lost_max=LOST_MAX,
        is_quiet=True,
    )


def _list_leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _list_leaves(one)
    else:
        yield error
