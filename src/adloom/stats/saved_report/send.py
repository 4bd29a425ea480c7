"""Sends reports when they are due, or when their owner asks: a job of the clock finds them, and one job each sends them.

A report is sent at most once for a day on which it is due, and for each time that somebody asks. Its row in
`report_sendings` or `report_requests` is begun, and committed, before the
mail server is asked: a worker that dies in between leaves a report unsent, never sent twice.
"""

from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from adloom.core.caller import Role
from adloom.core.clock import Clock
from adloom.core.currency import Currency
from adloom.runtime.jobs.cron import Cron
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.jobs.schedule import CronJob
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.mail.send import Mail, MailError, send_mail
from adloom.runtime.mail.settings import MailSettings, parse_smtp_url
from adloom.runtime.postgres import Pool
from adloom.stats.saved_report import store
from adloom.stats.saved_report.period import Due, find_latest_due
from adloom.stats.saved_report.report_mail import ReportMail, name_zone
from adloom.stats.saved_report.run import ReportReader, TooManyRowsError, find_report_zone, run_report
from adloom.stats.saved_report.store import ReportToSend, ScheduledReport, Sending

FIND_DUE_REPORTS: Final = "reports.find_due"
MAIL_REPORT: Final = "mail.report"
EVERY_FIVE_MINUTES: Final = Cron("*/5 * * * *")
NO_SERVER: Final = "E-mail is not set up: ADLOOM_SMTP_URL is not set."
IN_DOUBT: Final = "The connection to the mail server broke. It may have been sent, so it is not sent again."
KEPT: Final = timedelta(days=400)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def make_due_reports_job() -> CronJob:
    return CronJob(
        name=FIND_DUE_REPORTS,
        cron=EVERY_FIVE_MINUTES,
        job_id=lambda due: f"reports-find-due-{due:%Y-%m-%dT%H%M}",
    )


def find_due(report: ScheduledReport, now: datetime) -> Due | None:
    """Return the day for which a report is due and nothing is settled yet."""
    due = find_latest_due(report.schedule, now)
    is_settled = report.last_due_on is not None and due.on <= report.last_due_on
    return None if is_settled or due.at < report.scheduled_at else due


async def put_report_mail(mails: JobQueue, report_id: UUID, request_id: UUID, now: datetime) -> None:
    """Ask for the e-mail of a report now."""
    data = {"reportId": str(report_id), "requestId": str(request_id), "dueAt": now.isoformat()}
    await mails.put(MAIL_REPORT, job_id=f"{MAIL_REPORT}-now-{request_id.hex}", data=data)


class DueReports:
    """Puts a job for each report that is due."""

    def __init__(self, pool: Pool, mails: JobQueue, settings: MailSettings, clock: Clock) -> None:
        self._pool = pool
        self._mails = mails
        self._settings = settings
        self._clock = clock

    async def handle(self, _: JobAttempt) -> None:
        now = self._clock.now()
        await store.prune_sendings(self._pool, now - KEPT)
        skipped = 0
        for report in await store.list_scheduled(self._pool):
            due = find_due(report, now)
            if due is None:
                continue
            if not self._settings.is_on:
                await store.make_due_sending(self._pool, report.id, due.on).record_failure(NO_SERVER)
                skipped += 1
                continue
            data = {"reportId": str(report.id), "dueOn": str(due.on), "dueAt": due.at.isoformat()}
            await self._mails.put(MAIL_REPORT, job_id=f"{MAIL_REPORT}-{report.id.hex}-{due.on}", data=data)
        if skipped:
            log.warning("reports_not_sent", reports=skipped, reason=NO_SERVER)


class ReportMailer:
    """Writes and sends the report of one job."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        pool: Pool,
        settings: MailSettings,
        clock: Clock,
        *,
        public_url: str,
        currency: Currency,
        counts_unbound: bool,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock
        self._public_url = public_url
        self._currency = currency
        self._counts_unbound = counts_unbound
        self.sent = 0
        self.failed = 0

    async def handle(self, job: JobAttempt) -> None:
        report_id, asked = UUID(job.data["reportId"]), job.data.get("requestId")
        report = await store.find_to_send(self._pool, report_id, is_asked_for=asked is not None)
        if report is None:
            return  # Deleted, not to be sent any more, or of somebody who may see nothing any more.
        sending = (
            store.make_due_sending(self._pool, report_id, date.fromisoformat(job.data["dueOn"]))
            if asked is None
            else store.make_requested_sending(self._pool, UUID(asked))
        )
        if self._settings.smtp_url is None:
            await sending.record_failure(NO_SERVER)
            return
        try:
            mail = await self._write(report, sending.name, datetime.fromisoformat(job.data["dueAt"]))
        except TooManyRowsError as error:
            await sending.record_failure(str(error))
            raise PermanentJobError(str(error)) from error
        if await sending.begin(self._clock.now()):
            await self._send(sending, mail)

    async def _write(self, report: ReportToSend, sending: str, at: datetime) -> Mail:
        definition = report.definition
        reader = ReportReader(
            caller=report.owner,
            zone=find_report_zone(definition, report.owner_zone),
            counts_unbound=self._counts_unbound,
        )
        result = await run_report(self._pool, definition, reader, at=at, now=self._clock.now())
        letter = ReportMail(
            definition,
            result,
            currency=self._currency,
            is_publisher=report.owner.role is Role.PUBLISHER,
        )
        return letter.write(
            sender=self._settings.find_sender(self._public_url),
            to=report.email,
            others=report.others,
            link=f"{self._public_url}/console/reports?report={report.id}",
            zone_note=name_zone(reader.zone),
            mail_id=f"report-{report.id.hex}-{sending}",
        )

    async def _send(self, sending: Sending, mail: Mail) -> None:
        assert self._settings.smtp_url is not None
        now = self._clock.now()
        try:
            refused = await send_mail(parse_smtp_url(self._settings.smtp_url), mail, now=now)
        except MailError as error:
            self.failed += 1
            if error.is_doubtful:
                await sending.end(None, IN_DOUBT)
                raise PermanentJobError(str(error)) from error
            await sending.give_back(str(error))
            if error.is_permanent:
                raise PermanentJobError(str(error)) from error
            raise
        self.sent += 1
        failure = f"The mail server refused {', '.join(refused)}." if refused else None
        await sending.end(now, failure)
