"""The job that brings statuses up to the clock, every minute.

Serving does not wait for it: whether a banner or a campaign is open follows from its dates, at the second. The
status is for people and lists, so the job may be late, run twice, or not at all. Rows that a person is changing
right now are left for the next minute: the job makes no request wait, and cannot get into a deadlock.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.resource.audit.entry import AuditSubject, NewAuditEntry, make_system_author
from adloom.resource.changes import Catalog, CatalogWrite, IndexedNoun
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.postgres import Connection

QUEUE: Final = "banners"
SYNC_SCHEDULE_STATUS: Final = "banner.sync_schedule_status"
# As the audit trail calls them.
ACTIONS: Final = {"active": "activate", "ended": "end", "expired": "expire"}

# A transaction's worth; the caller comes again while there is more.
ROWS_MAX: Final = 5_000


def _write_move(
    noun: IndexedNoun, table: str, column: str, target: str, condition: str
) -> tuple[IndexedNoun, str]:
    """Write the SQL of a move: the rows of a table that meet a condition get a status; `$1` is the time."""
    statement = f"""
        WITH due AS (
            SELECT id, {column} AS status FROM {table}
             WHERE deleted_at IS NULL AND {condition}
             ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE {table} AS it
           SET {column} = '{target}', updated_at = greatest($1, it.updated_at + interval '1 microsecond')
          FROM due WHERE it.id = due.id
        RETURNING it.id AS key, it.public_id AS id, due.status::text AS was, it.{column}::text AS is_now,
                  (SELECT public_id FROM advertisers WHERE id = it.advertiser_id) AS owner_id
    """  # noqa: S608 - our own names
    return noun, statement


BANNERS: Final = (IndexedNoun.BANNER, "banners", "schedule_status")
CAMPAIGNS: Final = (IndexedNoun.CAMPAIGN, "campaigns", "status")
MOVES: Final = (
    _write_move(
        *BANNERS,
        "active",
        "schedule_status = 'scheduled' AND (publish_at IS NULL OR publish_at <= $1)"
        " AND (expires_at IS NULL OR expires_at > $1)",
    ),
    _write_move(*BANNERS, "expired", "schedule_status IN ('scheduled', 'active') AND expires_at < $1"),
    _write_move(
        *CAMPAIGNS, "active", "status = 'scheduled' AND starts_at <= $1 AND (ends_at IS NULL OR ends_at > $1)"
    ),
    _write_move(*CAMPAIGNS, "ended", "status IN ('scheduled', 'active') AND ends_at < $1"),
)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class StatusMove(msgspec.Struct, frozen=True, kw_only=True):
    """One thing whose status the clock has moved."""

    noun: IndexedNoun
    key: int
    id: UUID
    owner_id: UUID | None
    was: str
    is_now: str


async def move_due(connection: Connection, *, now: datetime, rows_max: int = ROWS_MAX) -> list[StatusMove]:
    """Move what is due, up to a bound for each move."""
    moves: list[StatusMove] = []
    for noun, statement in MOVES:
        rows = await connection.fetch(statement, now, rows_max)
        moves += (StatusMove(noun=noun, **row) for row in rows)
    return moves


def sync_job_id(moment: datetime) -> str:
    """Name the run of a minute; BullMQ allows no colon in an id."""
    return f"banner-sync-{moment:%Y-%m-%dT%H%M}"


def sync_job(cron: Cron) -> CronJob:
    return CronJob(name=SYNC_SCHEDULE_STATUS, cron=cron, job_id=sync_job_id)


class ScheduleSync:
    """Moves scheduled, active and ended things by their dates."""

    def __init__(self, catalog: Catalog, clock: Clock, *, rows_max: int = ROWS_MAX) -> None:
        self._catalog = catalog.with_author(make_system_author("schedule-sync"))
        self._clock = clock
        self._rows_max = rows_max
        # A plain counter, read by a collector.
        self.moved = 0

    async def handle(self, _job: JobAttempt) -> None:
        await self.run()

    async def run(self) -> list[StatusMove]:
        """Move everything that is due, and return what was moved.

        The four moves are one transaction and not four beside each other: the catalog has one
        version, so that they would only wait for each other, and half a sync would be visible.
        """
        moves: list[StatusMove] = []
        while True:
            now = self._clock.now()
            async with self._catalog.write() as write:
                some = await move_due(write.connection, now=now, rows_max=self._rows_max)
                self._record(write, some)
            moves += some
            # A move that reached the bound may have left some; fewer in all cannot.
            if len(some) < self._rows_max:
                break
        self.moved += len(moves)
        if moves:
            log.info("schedule_synced", moved=len(moves))
        return moves

    @staticmethod
    def _record(write: CatalogWrite, moves: list[StatusMove]) -> None:
        """Mark what changed for the indexes and in the audit trail."""
        for move in moves:
            write.touch(move.noun, move.key)
            about = AuditSubject(move.noun, str(move.id), move.owner_id)
            field = "status" if move.noun is IndexedNoun.CAMPAIGN else "scheduleStatus"
            write.entries.append(
                NewAuditEntry(about, ACTIONS[move.is_now], {field: {"from": move.was, "to": move.is_now}})
            )
