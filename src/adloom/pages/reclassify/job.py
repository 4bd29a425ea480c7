"""The job that asks for kept texts to be classified again, some every minute.

The classifier looks at each page first: where it classified this text in its present version already, it does
nothing. So it may be asked twice, and nothing else has to know its version.
"""

from datetime import datetime
from typing import Final

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.ids import SiteId
from adloom.pages.classify.queue import LENGTH_MAX, ClassifyQueue
from adloom.pages.classify.request import ClassifyRequest, hash_content
from adloom.pages.model import PageSource
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Connection, Pool

# Categories that were given came from no classifier.
CLASSIFIED: Final = "it.source <> 'given' AND it.classified_at IS NOT NULL"
ASK: Final = """
    INSERT INTO classify_again (site_id, requested_at) SELECT id, $2 FROM sites WHERE public_id = $1
    ON CONFLICT (site_id) DO UPDATE SET requested_at = excluded.requested_at, after_page = 0
"""
COUNT: Final = f"""
    SELECT count(it.text_start), count(*) - count(it.text_start)
      FROM site_pages AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.public_id = $1 AND {CLASSIFIED}
"""  # noqa: S608 - a constant
# Then the next crawl does not take them for unchanged.
FORGET_TEXTLESS: Final = f"""
    UPDATE site_pages AS it SET content_hash = NULL, etag = NULL, last_modified = NULL
      FROM sites AS site
     WHERE site.id = it.site_id AND site.public_id = $1 AND {CLASSIFIED} AND it.text_start IS NULL
       AND num_nonnulls(it.content_hash, it.etag, it.last_modified) > 0
"""  # noqa: S608 - a constant
NEXT_SITE: Final = """
    SELECT again.site_id AS key, site.public_id AS id, again.requested_at, again.after_page
      FROM classify_again AS again JOIN sites AS site ON site.id = again.site_id
     ORDER BY again.requested_at LIMIT 1 FOR UPDATE OF again SKIP LOCKED
"""
TEXTS: Final = f"""
    SELECT it.id AS key, it.url, it.title, it.language, it.source, it.text_start, it.content_hash, it.etag, it.last_modified
      FROM site_pages AS it
     WHERE it.site_id = $1 AND it.id > $2 AND it.classified_at < $3 AND it.text_start IS NOT NULL AND {CLASSIFIED}
     ORDER BY it.id LIMIT $4
"""  # noqa: S608 - a constant
ADVANCE: Final = "UPDATE classify_again SET after_page = $2 WHERE site_id = $1"
FINISH: Final = "DELETE FROM classify_again WHERE site_id = $1"


class ReclassifiedCount(msgspec.Struct, frozen=True):
    """How many pages are classified again from the text that is kept, and how many with the next crawl."""

    from_text: int
    at_next_crawl: int


class ReclassifiedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site whose pages are classified again; those up to `after_page` were asked for."""

    key: int
    id: SiteId
    requested_at: datetime
    after_page: int


class KeptText(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a page's text, as it was classified the last time."""

    key: int
    url: str
    title: str | None
    language: str | None
    source: PageSource
    text_start: str
    content_hash: bytes | None
    etag: str | None
    last_modified: str | None


async def request_reclassification(
    connection: Connection, site_id: SiteId, *, now: datetime
) -> ReclassifiedCount:
    """Note that the pages of a site are to be classified again, from the first on."""
    row = await connection.fetchrow(COUNT, site_id)
    assert row is not None, "a count has a row"
    await connection.execute(FORGET_TEXTLESS, site_id)
    await connection.execute(ASK, site_id, now)
    return ReclassifiedCount(*row)


async def find_next_site(connection: Connection) -> ReclassifiedSite | None:
    """Lock the site that has waited longest; one that another worker has is passed over."""
    row = await connection.fetchrow(NEXT_SITE)
    return None if row is None else msgspec.convert(dict(row), ReclassifiedSite)


async def read_texts(connection: Connection, site: ReclassifiedSite, *, count_max: int) -> list[KeptText]:
    rows = await connection.fetch(TEXTS, site.key, site.after_page, site.requested_at, count_max)
    return [msgspec.convert(dict(row), KeptText) for row in rows]


async def advance(connection: Connection, site: ReclassifiedSite, after_page: int) -> None:
    await connection.execute(ADVANCE, site.key, after_page)


async def finish(connection: Connection, site: ReclassifiedSite) -> None:
    await connection.execute(FINISH, site.key)


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
