"""The job that removes pages, every 5 minutes: the oldest beyond a site's most, what is long expired, and other domains'."""

from datetime import datetime, timedelta
from typing import Final

import structlog

from adloom.core.clock import Clock
from adloom.pages.model import PAGES_PER_SITE_MAX
from adloom.pages.notice import PageNotice, publish_written
from adloom.pages.store import evict_oldest, remove_expired, remove_foreign
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey

CLEAN_PAGES: Final = "pages.clean"
EVERY_5_MINUTES: Final = Cron("*/5 * * * *")
# A stale page still says what it was about, and a site that is crawled once a month finds it again.
KEPT_AFTER_EXPIRY: Final = timedelta(days=35)
# Of sites that were changed: another domain has other pages. Longer than a worker is away.
FOREIGN_LOOKED_FOR: Final = timedelta(days=1)
# A transaction's worth.
ROWS_MAX: Final = 1_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def make_cleaning_job() -> CronJob:
    return CronJob(
        name=CLEAN_PAGES, cron=EVERY_5_MINUTES, job_id=lambda moment: f"pages-clean-{moment:%Y-%m-%dT%H%M}"
    )


class PageCleaning:
    """Removes pages, some at a time, and notifies processes that hold them."""

    def __init__(
        self,
        pool: Pool,
        valkey: Valkey,
        clock: Clock,
        *,
        pages_max: int = PAGES_PER_SITE_MAX,
        rows_max: int = ROWS_MAX,
    ) -> None:
        self._pool = pool
        self._valkey = valkey
        self._clock = clock
        self._pages_max = pages_max
        self._rows_max = rows_max

    async def handle(self, _job: JobAttempt) -> None:
        await self.run()

    async def run(self) -> None:
        before = self._clock.now() - KEPT_AFTER_EXPIRY
        while notices := await self._remove_some(before):
            log.info("pages_cleaned", sites=len(notices))
            await publish_written(self._valkey, notices)

    async def _remove_some(self, before: datetime) -> list[PageNotice]:
        async with self._pool.acquire() as connection, connection.transaction():
            expired = await remove_expired(connection, before, rows_max=self._rows_max)
            foreign = await remove_foreign(
                connection, self._clock.now() - FOREIGN_LOOKED_FOR, rows_max=self._rows_max
            )
            evicted = await evict_oldest(connection, pages_max=self._pages_max, rows_max=self._rows_max)
        return list({notice.site_id: notice for notice in (*expired, *foreign, *evicted)}.values())
