"""Runs one crawl of a site, from where PostgreSQL says that it is."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final

import structlog

from adloom.pages.crawl import store
from adloom.pages.crawl.fetch import CrawlPace
from adloom.pages.crawl.frontier import FoundUrl, limit_addresses, read_address
from adloom.pages.crawl.model import (
    DURATION_MAX,
    CrawlInterruptedError,
    CrawlPlan,
    CrawlState,
    Progress,
    UrlState,
    WaitingUrl,
    describe_end,
)
from adloom.pages.crawl.robots import RobotsCache
from adloom.pages.crawl.sitemaps import find_in_sitemaps
from adloom.pages.crawl.visit import Visitor, VisitParts

BATCH: Final = 100
TICK_SECONDS: Final = 1.0
SETTLE_TICK_SECONDS: Final = 0.2
# The classifier may be away, or have thousands of pages of others before ours.
SETTLE_SECONDS_MAX: Final = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()

PublishVersion = Callable[[int], Awaitable[None]]


class SiteCrawl:
    """One crawl; every outcome is committed before the next address is taken, so a kill loses only what is on its way."""

    def __init__(
        self,
        plan: CrawlPlan,
        parts: VisitParts,
        stop: asyncio.Event,
        *,
        publish_version: PublishVersion,
        pages: Counter[str],
    ) -> None:
        self._plan = plan
        self._parts = parts
        self._stop = stop
        self._publish_version = publish_version
        self._outcomes = pages
        is_local = parts.client.is_local(plan.hosts.domain)
        self._pace = CrawlPace(0.0 if is_local else parts.delay_seconds)
        self._robots = RobotsCache(parts.client, self._pace, robot=parts.robot)
        # Hashes of all addresses that were taken up: a page is fetched once.
        self._known: set[int] = set()
        self._left: set[str] = set()
        self._position = 0
        self._prior: int | None = None
        self._pages = 0
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._has_sitemaps = False
        self._extended_version = 0
        self._ended_by: str | None = None

    async def run(self) -> CrawlState | None:
        """Run to the end; None if it had ended before. Raises `CrawlInterruptedError` where it is to go on later."""
        plan, parts = self._plan, self._parts
        async with parts.pool.acquire() as connection:
            started_at = await store.start_crawl(connection, plan, now=parts.clock.now())
            if started_at is None:
                return None
            self._prior = await store.forget_older(connection, plan)
            for url, position, is_left in await store.read_known(connection, plan.key):
                self._known.add(hash(url))
                self._position = max(self._position, position + 1)
                if is_left:
                    self._left.add(url)
            progress = await store.read_progress(connection, plan.key)
        assert progress is not None
        self._pages = progress.fetched
        rules = await self._robots.read(plan.seed)
        if isinstance(rules, str):
            return await self._finish(progress, failure=rules)
        await self._add_seed()
        await self._fetch_until_end(started_at)
        return await self._finish(await self._settle())

    async def _fetch_until_end(self, started_at: datetime) -> None:
        """Fetch until nothing is left, or time, a person or the process ends it."""
        visitor = Visitor(
            self._plan,
            self._parts,
            self._robots,
            self._pace,
            started_at=started_at,
            prior=self._prior,
            on_extended=self._note_extended,
            left=self._left,
        )
        left = DURATION_MAX - (self._parts.clock.now() - started_at)
        async with asyncio.TaskGroup() as group:
            tasks = [
                fetching := group.create_task(self._fetch_all(visitor)),
                group.create_task(self._watch()),
                group.create_task(self._stop.wait()),
            ]
            done, _ = await asyncio.wait(
                tasks, timeout=max(0.0, left.total_seconds()), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                self._ended_by = f"It ended after {DURATION_MAX.total_seconds() / 60:.0f} minutes."
            for task in tasks:
                task.cancel()
        if self._stop.is_set() and not (fetching.done() and not fetching.cancelled()):
            raise CrawlInterruptedError

    async def _fetch_all(self, visitor: Visitor) -> None:
        """Take the addresses breadth first, a few at once."""
        async with asyncio.TaskGroup() as group:
            while batch := await self._take_next_batch():
                for waiting in batch:
                    if waiting.depth > 0 and not self._has_sitemaps:
                        break  # The front page's own links come first, then those of sitemaps.
                    if not await self._make_room():
                        return
                    task = group.create_task(self._visit(visitor, waiting))
                    self._in_flight[waiting.url] = task
                    task.add_done_callback(lambda _, url=waiting.url: self._in_flight.pop(url, None))

    async def _take_next_batch(self) -> list[WaitingUrl]:
        """Read what waits; where nothing does, wait for what is on its way, then read sitemaps, then end."""
        while True:
            async with self._parts.pool.acquire() as connection:
                batch = await store.read_waiting(
                    connection, self._plan, self._prior, but=list(self._in_flight), count_max=BATCH
                )
            if batch and (self._has_sitemaps or batch[0].depth == 0):
                return batch
            if self._in_flight:
                await asyncio.wait(list(self._in_flight.values()), return_when=asyncio.FIRST_COMPLETED)
            elif not self._has_sitemaps:
                await self._add_sitemaps()
            else:
                return []

    async def _make_room(self) -> bool:
        """Wait until one more page may be fetched; False if there are enough."""
        limit = self._plan.crawl_concurrency
        while self._in_flight:
            is_enough = self._pages + len(self._in_flight) >= self._plan.max_pages
            if len(self._in_flight) < limit and not is_enough:
                return True
            await asyncio.wait(list(self._in_flight.values()), return_when=asyncio.FIRST_COMPLETED)
        if self._pages < self._plan.max_pages:
            return True
        self._ended_by = f"It ended at {self._plan.max_pages} pages, the most that the site wants."
        return False

    async def _visit(self, visitor: Visitor, waiting: WaitingUrl) -> None:
        outcome = await visitor.visit(waiting)
        links, instead = (
            self._take_new(outcome.links),
            self._take_new([outcome.instead] if outcome.instead else []),
        )
        async with self._parts.pool.acquire() as connection, connection.transaction():
            key, position = self._plan.key, self._position
            self._position += len(links) + len(instead)
            await store.add_urls(connection, key, instead, depth=waiting.depth, position=position)
            await store.add_urls(
                connection, key, links, depth=outcome.links_depth, position=position + len(instead)
            )
            await store.record_outcome(connection, key, waiting.url, outcome)
            if outcome.state is UrlState.FAILED:
                # Pages that were left for this one are read themselves.
                self._left.add(waiting.url)
                self._left.difference_update(await store.take_back(connection, key, waiting.url))
        self._pages += outcome.is_page
        self._outcomes[outcome.state.value] += 1

    def _take_new(self, found: Iterable[FoundUrl]) -> list[FoundUrl]:
        """Return those that the crawl has not taken up yet, as many as it may."""
        room = limit_addresses(self._plan.max_pages) - len(self._known)
        new: list[FoundUrl] = []
        for page in found:
            if len(new) < room and hash(page.url) not in self._known:
                self._known.add(hash(page.url))
                new.append(page)
        return new

    async def _add_seed(self) -> None:
        seed = read_address(self._plan.seed, self._plan.hosts)
        if seed is not None:
            await self._add(self._take_new([seed]), depth=0)

    async def _add_sitemaps(self) -> None:
        self._has_sitemaps = True
        if self._plan.max_depth > 0:
            found = await find_in_sitemaps(self._plan, self._parts.client, self._robots, self._pace)
            await self._add(self._take_new(found), depth=1)

    async def _add(self, found: list[FoundUrl], *, depth: int) -> None:
        async with self._parts.pool.acquire() as connection:
            position, self._position = self._position, self._position + len(found)
            await store.add_urls(connection, self._plan.key, found, depth=depth, position=position)

    async def _watch(self) -> None:
        """Count what the classifier has done, and return where the crawl is to end."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            progress = await self._read_progress()
            await self._notify_extended()
            if progress is None or progress.is_cancelled:
                return

    async def _settle(self) -> Progress:
        """Wait until the classifier has read all pages, as long as it makes progress."""
        loop = asyncio.get_running_loop()
        classified, since = -1, loop.time()
        while True:
            progress = await self._read_progress()
            await self._notify_extended()
            if progress is None:
                raise CrawlInterruptedError
            is_over = progress.is_cancelled or progress.classified >= progress.submitted
            if progress.classified != classified:
                classified, since = progress.classified, loop.time()
            if is_over or loop.time() - since > SETTLE_SECONDS_MAX:
                return progress
            if self._stop.is_set():
                raise CrawlInterruptedError
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), SETTLE_TICK_SECONDS)

    async def _finish(self, progress: Progress, *, failure: str | None = None) -> CrawlState:
        async with self._parts.pool.acquire() as connection:
            failure = failure or await store.read_first_failure(connection, self._plan.key)
            state, reason = describe_end(progress, stopped_by=self._ended_by, first_failure=failure)
            await store.finish_crawl(
                connection,
                self._plan.key,
                state,
                reason,
                classified=progress.classified,
                now=self._parts.clock.now(),
            )
        log.info(
            "crawl_ended", site=self._plan.domain, state=state.value, pages=progress.fetched, reason=reason
        )
        return state

    async def _read_progress(self) -> Progress | None:
        async with self._parts.pool.acquire() as connection:
            return await store.read_progress(connection, self._plan.key)

    def _note_extended(self, version: int) -> None:
        self._extended_version = max(version, self._extended_version)

    async def _notify_extended(self) -> None:
        """Tell followers of the site's pages that some are fresh again; one notice for many."""
        version, self._extended_version = self._extended_version, 0
        if version:
            await self._publish_version(version)
