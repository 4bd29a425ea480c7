"""The job that removes files that nothing has shown for a while, every hour."""

from datetime import timedelta
from typing import Final

import structlog

from adloom.catalog.asset import store
from adloom.core.clock import Clock
from adloom.runtime.files.store import FileStore
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Pool

CLEAN_ASSETS: Final = "assets.clean"
EVERY_HOUR: Final = Cron("17 * * * *")
ROWS_MAX: Final = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def make_asset_cleaning_job() -> CronJob:
    return CronJob(
        name=CLEAN_ASSETS, cron=EVERY_HOUR, job_id=lambda moment: f"assets-clean-{moment:%Y-%m-%dT%H%M}"
    )


class AssetCleaning:
    """Removes unused files, one by one: each under the lock of its bytes."""

    def __init__(self, pool: Pool, files: FileStore, clock: Clock, *, unused_days: int) -> None:
        self._pool = pool
        self._files = files
        self._clock = clock
        self._kept = timedelta(days=unused_days)

    async def handle(self, _job: JobAttempt) -> None:
        await self.run()

    async def run(self) -> int:
        """Note what is shown, and remove what was not for so long; return how many."""
        now = self._clock.now()
        before, removed = now - self._kept, 0
        async with self._pool.acquire() as connection:
            await store.note_shown(connection, now=now)
            unused = await store.list_unused(connection, before=before, rows_max=ROWS_MAX)
        for key, sha256 in unused:
            async with self._pool.acquire() as connection, connection.transaction():
                await store.lock_bytes(connection, sha256)
                keys = await store.delete_unused(connection, key, before=before)
                if keys is None:
                    continue
                # Inside: where the files cannot be removed, the row stays and is tried again.
                await self._files.delete(keys)
            removed += 1
        if removed:
            log.info("assets_cleaned", removed=removed)
        return removed
