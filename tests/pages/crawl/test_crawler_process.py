"""The crawler as a process: killed at any moment, its crawls go on."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from adloom.pages.crawl.model import CrawlState
from adloom.pages.crawl.schedule import open_crawl_queue, put_crawl
from tests.support.crawls import CrawlWorld
from tests.support.forked import ForkedPopen
from tests.support.product import clean_environment
from tests.support.website import Website, running_website

PAGES = 40
KILLED_AT = (3, 20)
CONCURRENCY = 5
TEXT = (
    "A long walk along the river leads through meadows and past three mills to the old town with its market square. "
    * 3
)


@pytest.fixture
async def website() -> AsyncIterator[Website]:
    async with running_website() as website:
        paths = [f"/{number}" for number in range(PAGES)]
        website.article("/", "Front", TEXT, tuple(paths))
        for path in paths:
            website.article(path, f"Page {path}", f"{TEXT} {path}")
        yield website


@asynccontextmanager
async def running_crawler(database_url: str, redis_url: str, website: Website) -> AsyncGenerator[ForkedPopen]:
    variables = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "ADLOOM_CRAWLER_PORT": "0",
        "ADLOOM_CRAWL_RESOLVE": f"a.test=127.0.0.1:{website.port}",
    }
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.crawler"], env={**clean_environment(), **variables}
    )
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


async def until(is_so: Callable[[], Awaitable[bool]], *, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not await is_so():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


@pytest.mark.process
async def test_a_crawl_goes_on_when_its_process_is_killed(
    database_url: str, redis_url: str, world: CrawlWorld, website: Website
) -> None:
    website.delay = 0.3
    site = await world.add_site("a.test", crawl_concurrency=CONCURRENCY)
    crawl_id = await world.queue_crawl(site)

    async def has_fetched(count: int) -> bool:
        return (await world.read(site, crawl_id)).pages_fetched >= count

    # Without a job: the crawler finds the crawl by itself.
    for fetched in KILLED_AT:
        async with running_crawler(database_url, redis_url, website) as process:
            await until(lambda count=fetched: has_fetched(count), seconds=40)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.to_thread(process.wait)
    async with running_crawler(database_url, redis_url, website):

        async def has_ended() -> bool:
            return (await world.read(site, crawl_id)).state is not CrawlState.RUNNING

        await until(has_ended, seconds=60)

    crawl = await world.read(site, crawl_id)
    assert (crawl.state, crawl.reason) == (CrawlState.FINISHED, None)
    assert (crawl.pages_fetched, crawl.pages_classified, crawl.pages_unchanged) == (PAGES + 1, PAGES + 1, 0)
    again = [path for path in set(website.paths) if website.paths.count(path) > 1]
    assert len(set(again) - {"/robots.txt", "/sitemap.xml"}) <= len(KILLED_AT) * CONCURRENCY, (
        "what was on its way, and no more"
    )
    assert len({request.url for request in world.classifier.requests}) == PAGES + 1
    assert len(world.classifier.requests) <= PAGES + 1 + len(KILLED_AT) * CONCURRENCY


@pytest.mark.process
async def test_a_crawler_that_is_stopped_ends_soon_and_another_goes_on(
    database_url: str, redis_url: str, world: CrawlWorld, website: Website
) -> None:
    website.delay = 0.2
    site = await world.add_site("a.test", crawl_concurrency=2, max_pages=30)
    crawl_id = await world.queue_crawl(site)
    async with open_crawl_queue(redis_url) as queue:
        await put_crawl(queue, crawl_id)

    async def is_state(state: CrawlState) -> bool:
        return (await world.read(site, crawl_id)).state is state

    async with running_crawler(database_url, redis_url, website) as process:
        await until(lambda: is_state(CrawlState.RUNNING), seconds=30)
        await asyncio.sleep(1)
        process.terminate()
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(process.wait) == 0
    assert await is_state(CrawlState.RUNNING)
    async with running_crawler(database_url, redis_url, website):
        await until(lambda: is_state(CrawlState.FINISHED), seconds=40)

    crawl = await world.read(site, crawl_id)
    assert (crawl.pages_fetched, crawl.pages_classified) == (30, 30)


@pytest.mark.process
async def test_the_clock_starts_a_crawl_and_two_crawlers_make_one_of_it(
    database_url: str, redis_url: str, world: CrawlWorld, website: Website
) -> None:
    await world.add_site("a.test", cron_schedule="* * * * *", max_pages=1)
    await world.parts.pool.execute("UPDATE sites SET created_at = now() - interval '1 day'")

    async def has_ended() -> bool:
        return (
            await world.parts.pool.fetchval("SELECT count(*) FROM site_crawls WHERE state = 'finished'") >= 1
        )

    async with (
        running_crawler(database_url, redis_url, website),
        running_crawler(database_url, redis_url, website),
    ):
        await until(has_ended, seconds=40)

    rows = await world.parts.pool.fetch("SELECT state, pages_fetched FROM site_crawls")
    assert [(row["state"], row["pages_fetched"]) for row in rows] == [("finished", 1)]
