"""Crawls of a website on the loopback, with a classifier that says the same of every page."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import structlog

from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import SiteId, SystemIds
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest
from adloom.pages.classify.store import renew_given
from adloom.pages.crawl import store
from adloom.pages.crawl.crawl import SiteCrawl
from adloom.pages.crawl.model import Crawl, CrawlId, UrlState
from adloom.pages.crawl.visit import PageReader, VisitParts
from adloom.runtime.listing import PageRequest
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.outbound.settings import LocalHost, OutboundSettings
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.website import Website

CLASSIFIED = """
    INSERT INTO site_pages (public_id, site_id, url, title, source, classifier, classifier_version, content_hash, etag,
                            last_modified, fetched_at, classified_at, expires_at, created_at, updated_at)
    SELECT gen_random_uuid(), id, $2, $3, 'crawl', 'fake', '1', $4, $5, $6, $7::timestamptz, $7, $7::timestamptz + interval '48 hours', $7, $7
      FROM sites WHERE public_id = $1
    ON CONFLICT (site_id, url) DO UPDATE SET title = excluded.title, content_hash = excluded.content_hash,
        etag = excluded.etag, last_modified = excluded.last_modified, classified_at = excluded.classified_at,
        expires_at = excluded.expires_at, updated_at = excluded.updated_at
"""
NEW_SITE = "INSERT INTO sites (public_id, domain, name, {names}created_at, updated_at) VALUES ($1, $2, $2, {values}now(), now())"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class FakeClassifier:
    """Takes pages from the queue and writes them as classified."""

    def __init__(self, pool: Pool, queue: ClassifyQueue, clock: Clock) -> None:
        self._pool = pool
        self._queue = queue
        self._clock = clock
        self.requests: list[ClassifyRequest] = []

    async def run(self) -> None:
        while True:
            for one in await self._queue.read("fake", count_max=20, wait_seconds=0.05):
                request = one.request
                self.requests.append(request)
                now = self._clock.now()
                async with self._pool.acquire() as connection:
                    if await renew_given(connection, request, now=now, expires_at=now) is None:
                        await connection.execute(
                            CLASSIFIED,
                            request.site_id,
                            request.url,
                            request.title,
                            request.content_hash,
                            request.etag,
                            request.last_modified,
                            now,
                        )
                await self._queue.acknowledge([one.entry_id])


class CrawlWorld:
    """A pool, a queue with its classifier, and a client that finds websites on the loopback."""

    def __init__(self, parts: VisitParts, classifier: FakeClassifier) -> None:
        self.parts = parts
        self.classifier = classifier
        self.stop = asyncio.Event()
        self.told: list[int] = []

    async def add_site(self, domain: str, **fields: Any) -> SiteId:
        site_id = SystemIds().make()
        names = "".join(f"{name}, " for name in fields)
        values = "".join(f"${number}, " for number in range(3, len(fields) + 3))
        await self.parts.pool.execute(
            NEW_SITE.format(names=names, values=values), site_id, domain, *fields.values()
        )
        return SiteId(site_id)

    async def queue_crawl(self, site_id: SiteId) -> CrawlId:
        crawl_id = CrawlId(SystemIds().make())
        async with self.parts.pool.acquire() as connection:
            await store.create_crawl(connection, crawl_id, site_id, now=self.parts.clock.now())
        return crawl_id

    async def run(self, crawl_id: CrawlId) -> None:
        async with self.parts.pool.acquire() as connection:
            plan = await store.read_plan(connection, crawl_id)
        assert plan is not None

        async def tell(version: int) -> None:
            self.told.append(version)

        await SiteCrawl(plan, self.parts, self.stop, publish_version=tell, pages=Counter()).run()

    async def crawl(self, site_id: SiteId) -> Crawl:
        crawl_id = await self.queue_crawl(site_id)
        await self.run(crawl_id)
        return await self.read(site_id, crawl_id)

    async def read(self, site_id: SiteId, crawl_id: UUID) -> Crawl:
        async with self.parts.pool.acquire() as connection:
            listed = await store.list_crawls(
                connection, site_id, PageRequest(sort="created_at"), crawl_id=crawl_id
            )
        return listed.items[0]

    async def reasons(self, site_id: SiteId, crawl: Crawl, state: UrlState) -> dict[str, str | None]:
        """What came of the addresses in a state, by their paths."""
        async with self.parts.pool.acquire() as connection:
            page = PageRequest(size=100, sort="position")
            listed = await store.list_urls(connection, site_id, crawl.id, page, state=state)
        return {"/" + one.url.partition("/")[2]: one.reason for one in listed.items}

    async def pages(self) -> list[str]:
        rows = await self.parts.pool.fetch("SELECT url FROM site_pages ORDER BY url")
        return ["/" + row["url"].partition("/")[2] for row in rows]


@asynccontextmanager
async def open_world(pool: Pool, valkey: Valkey, **websites: Website) -> AsyncGenerator[CrawlWorld]:
    """Open a world where `a=website` is found at `a.test`."""
    local = {f"{name}.test": LocalHost("127.0.0.1", one.port) for name, one in websites.items()}
    settings = OutboundSettings(user_agent="AdloomBot/1.0 (+https://example.com)", local_hosts=local)
    queue, clock, reader = ClassifyQueue(valkey), SystemClock(), PageReader()
    classifier = FakeClassifier(pool, queue, clock)
    async with open_outbound(settings, seconds_max=2.0) as client:
        parts = VisitParts(
            pool=pool,
            client=client,
            queue=queue,
            reader=reader,
            clock=clock,
            robot="AdloomBot",
            fresh_hours=48,
            delay_seconds=1.0,
        )
        task = asyncio.ensure_future(classifier.run())
        try:
            yield CrawlWorld(parts, classifier)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            reader.close()
