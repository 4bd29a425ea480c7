"""The queue of crawls: a job for each crawl that waits or runs."""

from functools import partial
from typing import Final

from adloom.pages.crawl.model import CrawlId
from adloom.runtime.jobs.queue import JobQueue, NewJob, open_queue

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
