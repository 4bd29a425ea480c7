"""SQL of the e-mails of saved reports: what is due or asked for, who gets it, and what became of it."""

from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role
from adloom.core.errors import RateLimitedError
from adloom.runtime.postgres import Pool
from adloom.stats.saved_report.period import SendEvery, SendSchedule
from adloom.stats.saved_report.run import UTC_NAME, ReportDefinition

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
PRUNE: Final = "DELETE FROM report_sendings WHERE due_on < $1"
PRUNE_ASKED: Final = "DELETE FROM report_requests WHERE asked_at < $1"
PAUSE: Final = timedelta(minutes=1)
PER_DAY_MAX: Final = 50  # Of one person.
DAY: Final = timedelta(days=1)
# The owner's row is locked: of two who ask at once, the second sees the first.
LOCK: Final = """
    SELECT it.id, it.owner_id FROM saved_reports AS it JOIN users AS owner ON owner.id = it.owner_id
     WHERE it.public_id = $1 FOR UPDATE OF owner
"""
ASKED: Final = """
    SELECT max(asked_at) FILTER (WHERE report_id = $1 AND failure IS NULL) AS last_at,
           count(*) AS number, min(asked_at) AS first_at
      FROM report_requests
     WHERE report_id IN (SELECT id FROM saved_reports WHERE owner_id = $2) AND asked_at > $3
"""
ASK: Final = "INSERT INTO report_requests (id, report_id, asked_at) VALUES ($1, $2, $3)"


class SendingStatements(NamedTuple):
    """How an e-mail is begun, settled, given back, or noted as not sent; the keys of its row come first."""

    begin: str
    end: str
    give_back: str
    fail: str


# Each is begun at most once, by whichever worker is first. A failure that left no doubt has given it back.
ON_A_DAY: Final = SendingStatements(
    begin="""
        INSERT INTO report_sendings (report_id, due_on, begun_at)
        SELECT id, $2, $3 FROM saved_reports WHERE public_id = $1
        ON CONFLICT (report_id, due_on) DO UPDATE SET begun_at = excluded.begun_at, failure = NULL
         WHERE report_sendings.begun_at IS NULL
        RETURNING true
    """,
    end="""
        UPDATE report_sendings SET sent_at = $3, failure = $4
         WHERE report_id = (SELECT id FROM saved_reports WHERE public_id = $1) AND due_on = $2
    """,
    give_back="""
        UPDATE report_sendings SET begun_at = NULL, failure = $3
         WHERE report_id = (SELECT id FROM saved_reports WHERE public_id = $1) AND due_on = $2
    """,
    # Where it was begun by another, that one says what became of it.
    fail="""
        INSERT INTO report_sendings AS sending (report_id, due_on, failure)
        SELECT id, $2, $3 FROM saved_reports WHERE public_id = $1
        ON CONFLICT (report_id, due_on) DO UPDATE SET failure = excluded.failure WHERE sending.begun_at IS NULL
    """,
)
ASKED_FOR: Final = SendingStatements(
    begin="""
        UPDATE report_requests SET begun_at = $2, failure = NULL WHERE id = $1 AND begun_at IS NULL RETURNING true
    """,
    end="UPDATE report_requests SET sent_at = $2, failure = $3 WHERE id = $1",
    give_back="UPDATE report_requests SET begun_at = NULL, failure = $2 WHERE id = $1",
    fail="UPDATE report_requests SET failure = $2 WHERE id = $1 AND begun_at IS NULL",
)


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


async def find_to_send(pool: Pool, report_id: UUID, *, is_asked_for: bool) -> ReportToSend | None:
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


class Sending(msgspec.Struct, frozen=True):
    """What becomes of an e-mail; `name` tells it from others of the same report."""

    pool: Pool
    name: str
    statements: SendingStatements
    keys: tuple[Any, ...]

    async def begin(self, now: datetime) -> bool:
        """Take it; False where it was begun before."""
        return bool(await self.pool.fetchval(self.statements.begin, *self.keys, now))

    async def end(self, sent_at: datetime | None, failure: str | None) -> None:
        """Say what became of it after it was begun, for good."""
        await self.pool.execute(self.statements.end, *self.keys, sent_at, failure)

    async def give_back(self, failure: str) -> None:
        """Let another attempt begin, after one that has certainly not sent anything."""
        await self.pool.execute(self.statements.give_back, *self.keys, failure)

    async def record_failure(self, failure: str) -> None:
        """Say why it was not sent; it can still be begun."""
        await self.pool.execute(self.statements.fail, *self.keys, failure)


def make_due_sending(pool: Pool, report_id: UUID, due_on: date) -> Sending:
    return Sending(pool, str(due_on), ON_A_DAY, (report_id, due_on))


def make_requested_sending(pool: Pool, request_id: UUID) -> Sending:
    return Sending(pool, request_id.hex, ASKED_FOR, (request_id,))


async def ask_for_sending(pool: Pool, request_id: UUID, report_id: UUID, now: datetime) -> None:
    """Note that somebody wants a report now; few at once, because each is an e-mail."""
    async with pool.acquire() as connection, connection.transaction():
        report = await connection.fetchrow(LOCK, report_id)
        if report is None:
            return  # Deleted meanwhile: nothing will be sent.
        asked = await connection.fetchrow(ASKED, report["id"], report["owner_id"], now - DAY)
        assert asked is not None, "an aggregate has a row"
        if asked["last_at"] is not None and asked["last_at"] > now - PAUSE:
            raise _make_too_soon_error("This report was sent a moment ago.", asked["last_at"] + PAUSE - now)
        if asked["number"] >= PER_DAY_MAX:
            said = f"You have had {PER_DAY_MAX} reports sent in a day."
            raise _make_too_soon_error(said, asked["first_at"] + DAY - now)
        await connection.execute(ASK, request_id, report["id"], now)


def _make_too_soon_error(reason: str, wait: timedelta) -> RateLimitedError:
    seconds = int(wait.total_seconds()) + 1
    return RateLimitedError(f"{reason} Try again in {seconds} seconds.", retry_after_seconds=seconds)


async def prune_sendings(pool: Pool, before: datetime) -> None:
    """Forget what became of e-mails that were due, or asked for, long ago."""
    await pool.execute(PRUNE, before.date())
    await pool.execute(PRUNE_ASKED, before)
