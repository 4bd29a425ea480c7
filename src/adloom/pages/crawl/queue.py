"""The queue of crawls: a job for each crawl that waits or runs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from adloom.pages.crawl.model import CrawlId
from adloom.runtime.jobs.queue import ANSWER_SECONDS_MAX, JobQueue, NewJob, open_queue

QUEUE: Final = "site-crawls"
CRAWL_SITE: Final = "site.crawl"
# Each restart of a crawler in the middle of a crawl is an attempt.
ATTEMPTS_MAX: Final = 1_000
BACKOFF_MILLISECONDS: Final = 1_000
# PostgreSQL has what came of crawls.
ENDED_KEPT: Final = 100


@asynccontextmanager
async def open_crawl_queue(
    redis_url: str, *, answer_seconds_max: float = ANSWER_SECONDS_MAX
) -> AsyncGenerator[JobQueue]:
    async with open_queue(
        QUEUE,
        redis_url,
        attempts_max=ATTEMPTS_MAX,
        backoff_milliseconds=BACKOFF_MILLISECONDS,
        backoff_type="fixed",
        done_kept=ENDED_KEPT,
        dead_kept=ENDED_KEPT,
        answer_seconds_max=answer_seconds_max,
    ) as queue:
        yield queue


async def put_crawl(queue: JobQueue, crawl_id: CrawlId) -> None:
    """Put the job of a crawl, unless it waits or runs."""
    await queue.put_again([NewJob(id=crawl_id.hex, name=CRAWL_SITE, data={"crawlId": str(crawl_id)})])
