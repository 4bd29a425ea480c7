"""The job that asks for kept texts to be classified again, some every minute.

The classifier looks at each page first: where it classified this text in its present version already, it does
nothing. So it may be asked twice, and nothing else has to know its version.
"""

from datetime import datetime
from typing import Final

import structlog

from adloom.core.clock import Clock
from adloom.pages.classify.queue import LENGTH_MAX, ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest, hash_content
from adloom.pages.reclassify.store import (
    KeptText,
    ReclassifiedSite,
    advance,
    find_next_site,
    finish,
    read_texts,
)
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Pool

CLASSIFY_AGAIN: Final = "pages.classify_again"
EVERY_MINUTE: Final = Cron("* * * * *")
# Half of the queue stays free for texts of readers and crawlers.
QUEUE_LENGTH_MAX: Final = LENGTH_MAX // 2
TEXTS_A_TRANSACTION_MAX: Final = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def make_reclassify_job() -> CronJob:
    return CronJob(
        name=CLASSIFY_AGAIN,
        cron=EVERY_MINUTE,
        job_id=lambda moment: f"pages-classify-again-{moment:%Y-%m-%dT%H%M}",
    )


class Reclassification:
    """Puts kept texts on the classifier's queue while there is room."""

    def __init__(
        self,
        pool: Pool,
        queue: ClassifyQueue,
        clock: Clock,
        *,
        length_max: int = QUEUE_LENGTH_MAX,
        texts_max: int = TEXTS_A_TRANSACTION_MAX,
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._clock = clock
        self._length_max = length_max
        self._texts_max = texts_max

    async def handle(self, _job: JobAttempt) -> None:
        await self.run()

    async def run(self) -> int:
        """Put texts until none is left or the queue is long enough; returns how many."""
        count = 0
        has_room = True
        while has_room and (some := await self._put_some()) is not None:
            count += some[0]
            has_room = some[1]
        if count:
            log.info("pages_asked_again", pages=count)
        return count

    async def _put_some(self) -> tuple[int, bool] | None:
        """Put some texts of one site: how many, and whether there is room for more; None where no site waits."""
        async with self._pool.acquire() as connection, connection.transaction():
            site = await find_next_site(connection)
            if site is None:
                return None
            texts = await read_texts(connection, site, count_max=self._texts_max)
            now = self._clock.now()
            count = 0
            for text in texts:
                if not await self._queue.put(build_request(site, text, now), length_max=self._length_max):
                    break
                count += 1
            if count:
                await advance(connection, site, texts[count - 1].key)
            if count == len(texts) < self._texts_max:
                await finish(connection, site)
            return count, count == len(texts)


def build_request(site: ReclassifiedSite, text: KeptText, now: datetime) -> ClassifyRequest:
    """Make the request of a kept text. Its hash stays that of the whole text, so that a crawl finds it unchanged."""
    return ClassifyRequest(
        site_id=site.id,
        url=text.url,
        title=text.title or "",
        text=text.text_start,
        language=text.language,
        source=text.source,
        content_hash=text.content_hash or hash_content(text.title, None, text.text_start),
        etag=text.etag,
        last_modified=text.last_modified,
        requested_at=now,
        is_kept=True,
    )
