"""SQL of the e-mails of saved reports: what is due, who gets it, and what became of it."""

from datetime import date, datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.runtime.postgres import Pool
from adloom.stats.saved_report.definition import UTC_NAME, ReportDefinition
from adloom.stats.saved_report.period import SendEvery, SendSchedule

# An account that is disabled, or whose advertiser or publisher is deleted, gets nothing.
OF_WHO_MAY_SEE: Final = """
      FROM saved_reports AS it
      JOIN users AS owner ON owner.id = it.owner_id
      LEFT JOIN advertisers ON owner.role = 'advertiser' AND advertisers.public_id = owner.account_id
      LEFT JOIN publishers ON owner.role = 'publisher' AND publishers.public_id = owner.account_id
     WHERE owner.disabled_at IS NULL
       AND advertisers.deleted_at IS NULL AND publishers.deleted_at IS NULL
"""
SCHEDULED: Final = f"""
    SELECT it.public_id AS id, it.send_every, it.send_weekday, it.send_hour, it.scheduled_at, owner.time_zone,
           (SELECT max(due_on) FROM report_sendings WHERE report_id = it.id) AS last_due_on
    {OF_WHO_MAY_SEE} AND it.send_every IS NOT NULL
     ORDER BY it.id
"""  # noqa: S608 - our own words
COLUMNS: Final = ", ".join(f"it.{field}" for field in ReportDefinition.__struct_fields__)
TO_SEND: Final = f"""
    SELECT {COLUMNS}, it.public_id AS id, it.recipients, owner.public_id AS owner_id, owner.email, owner.role,
           owner.account_id, owner.time_zone AS owner_zone
    {OF_WHO_MAY_SEE} AND it.public_id = $1 AND (it.send_every IS NOT NULL OR $2)
"""
# Begun at most once for a day, by whichever worker is first. A failure that left no doubt has given it back.
BEGIN: Final = """
    INSERT INTO report_sendings (report_id, due_on, begun_at)
    SELECT id, $2, $3 FROM saved_reports WHERE public_id = $1
    ON CONFLICT (report_id, due_on) DO UPDATE SET begun_at = excluded.begun_at, failure = NULL
     WHERE report_sendings.begun_at IS NULL
    RETURNING true
"""
END: Final = """
    UPDATE report_sendings SET sent_at = $3, failure = $4
     WHERE report_id = (SELECT id FROM saved_reports WHERE public_id = $1) AND due_on = $2
"""
# Where it was begun by another, that one says what became of it.
FAIL: Final = """
    INSERT INTO report_sendings AS sending (report_id, due_on, failure)
    SELECT id, $2, $3 FROM saved_reports WHERE public_id = $1
    ON CONFLICT (report_id, due_on) DO UPDATE SET failure = excluded.failure WHERE sending.begun_at IS NULL
"""
GIVE_BACK: Final = """
    UPDATE report_sendings SET begun_at = NULL, failure = $3
     WHERE report_id = (SELECT id FROM saved_reports WHERE public_id = $1) AND due_on = $2
"""
PRUNE: Final = "DELETE FROM report_sendings WHERE due_on < $1"


class ScheduledReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report that is sent, since when, and the last day for which that is settled."""

    id: UUID
    schedule: SendSchedule
    scheduled_at: datetime
    last_due_on: date | None


class ReportToSend(msgspec.Struct, frozen=True, kw_only=True):
    """A report, its owner with the rights of now, and who else gets it."""

    id: UUID
    definition: ReportDefinition
    owner: Caller
    owner_zone: str | None
    email: str
    others: tuple[str, ...]


async def list_scheduled(pool: Pool) -> list[ScheduledReport]:
    """List the reports that are sent, of people who may see something."""
    return [
        ScheduledReport(
            id=row["id"],
            schedule=SendSchedule(
                every=SendEvery(row["send_every"]),
                weekday=row["send_weekday"],
                hour=row["send_hour"],
                zone=ZoneInfo(row["time_zone"] or UTC_NAME),
            ),
            scheduled_at=row["scheduled_at"],
            last_due_on=row["last_due_on"],
        )
        for row in await pool.fetch(SCHEDULED)
    ]


async def find_to_send(pool: Pool, report_id: UUID, *, is_asked_for: bool = False) -> ReportToSend | None:
    """Find a report that is still to be sent; others than its owner get it only while that is an admin.

    One that somebody asked for need have no schedule.
    """
    row = await pool.fetchrow(TO_SEND, report_id, is_asked_for)
    if row is None:
        return None
    fields: dict[str, Any] = {field: row[field] for field in ReportDefinition.__struct_fields__}
    role = Role(row["role"])
    return ReportToSend(
        id=row["id"],
        definition=msgspec.convert(fields, ReportDefinition),
        owner=Caller(
            subject=str(row["owner_id"]),
            role=role,
            account_id=row["account_id"] if role in ACCOUNT_ROLES else None,
        ),
        owner_zone=row["owner_zone"],
        email=row["email"],
        others=tuple(row["recipients"]) if role is Role.ADMIN else (),
    )


class DueSending(msgspec.Struct, frozen=True):
    """What becomes of the e-mail of a day on which a report is due."""

    pool: Pool
    report_id: UUID
    due_on: date

    @property
    def name(self) -> str:
        return str(self.due_on)

    async def begin(self, now: datetime) -> bool:
        """Take the sending of a day; False where it was begun before."""
        return bool(await self.pool.fetchval(BEGIN, self.report_id, self.due_on, now))

    async def end(self, sent_at: datetime | None, failure: str | None) -> None:
        """Say what became of a sending that was begun, for good."""
        await self.pool.execute(END, self.report_id, self.due_on, sent_at, failure)

    async def give_back(self, failure: str) -> None:
        """Let another attempt begin, after one that has certainly not sent anything."""
        await self.pool.execute(GIVE_BACK, self.report_id, self.due_on, failure)

    async def record_failure(self, failure: str) -> None:
        """Say why a day was not sent; it can still be begun."""
        await self.pool.execute(FAIL, self.report_id, self.due_on, failure)


async def prune_sendings(pool: Pool, before: date) -> None:
    await pool.execute(PRUNE, before)
