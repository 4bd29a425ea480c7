"""The job that brings statuses up to the clock, every minute.

Serving does not wait for it: whether a banner or a campaign is open follows from its dates, at
the second. The status is for people and lists, so the job may be late, run twice, or not at all.
"""

from datetime import datetime
from typing import Final

import structlog

from adloom.catalog import schedule_store
from adloom.catalog.schedule_store import StatusMove
from adloom.core.clock import Clock
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry, system_author
from adloom.resource.changes import Catalog, CatalogWrite, IndexedNoun
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt

QUEUE: Final = "banners"
SYNC_SCHEDULE_STATUS: Final = "banner.sync_schedule_status"
# As the trail calls them.
ACTIONS: Final = {"active": "activate", "ended": "end", "expired": "expire"}

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def sync_job_id(moment: datetime) -> str:
    """Name the run of a minute; BullMQ allows no colon in an id."""
    return f"banner-sync-{moment:%Y-%m-%dT%H%M}"


def sync_job(cron: Cron) -> CronJob:
    """Tell the clock what to start."""
    return CronJob(name=SYNC_SCHEDULE_STATUS, cron=cron, job_id=sync_job_id)


class ScheduleSync:
    """Moves scheduled, active and ended things by their dates."""

    def __init__(self, catalog: Catalog, clock: Clock, *, rows_max: int = schedule_store.ROWS_MAX) -> None:
        self._catalog = catalog.written_by(system_author("schedule-sync"))
        self._clock = clock
        self._rows_max = rows_max
        # A plain counter, read by a collector.
        self.moved = 0

    async def handle(self, _job: JobAttempt) -> None:
        """Do what the job says."""
        await self.run()

    async def run(self) -> list[StatusMove]:
        """Move everything that is due, and tell what was moved.

        The four moves are one transaction and not four beside each other: the catalog has one
        version, so that they would only wait for each other, and half a sync would be visible.
        """
        moves: list[StatusMove] = []
        while True:
            now = self._clock.now()
            async with self._catalog.write() as write:
                some = await schedule_store.move_due(write.connection, now=now, rows_max=self._rows_max)
                self._tell(write, some)
            moves += some
            # A move that reached the bound may have left some; fewer in all cannot.
            if len(some) < self._rows_max:
                break
        self.moved += len(moves)
        if moves:
            log.info("schedule_synced", moved=len(moves))
        return moves

    @staticmethod
    def _tell(write: CatalogWrite, moves: list[StatusMove]) -> None:
        """Say what changed to the indexes and in the trail."""
        for move in moves:
            write.touch(move.noun, move.key)
            about = AuditSubject(move.noun, str(move.id), move.owner_id)
            field = "status" if move.noun is IndexedNoun.CAMPAIGN else "scheduleStatus"
            write.entries.append(
                NewAuditEntry(about, ACTIONS[move.is_now], {field: {"from": move.was, "to": move.is_now}})
            )
