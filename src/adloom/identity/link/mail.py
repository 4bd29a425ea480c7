"""Links by e-mail. The worker makes the link when it sends it: no token waits in a queue."""

from datetime import datetime
from typing import Final
from uuid import UUID

from adloom.core.clock import Clock
from adloom.identity.link.store import LinkPurpose, NewLink, create_link
from adloom.resource.audit import store as audit_store
from adloom.resource.audit.entry import AuditSubject, Author, NewAuditEntry
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.mail.send import Mail, MailError, send_mail
from adloom.runtime.mail.settings import MailSettings, parse_smtp_url
from adloom.runtime.postgres import Pool

MAIL_LINK: Final = "mail.link"
SUBJECTS: Final = {
    LinkPurpose.INVITATION: "Your invitation to Adloom",
    LinkPurpose.RESET: "A new password for Adloom",
}
TEXTS: Final = {
    LinkPurpose.INVITATION: (
        "Hello,\n\nyou are invited to Adloom at {public_url}. Choose a password here; you log in with it and with"
        " {email}:\n\n{url}\n\nThe link works once, until {until}. If you do not know what this is, ignore it.\n"
    ),
    LinkPurpose.RESET: (
        "Hello,\n\nsomebody, probably you, wants a new password for {email} at {public_url}. Choose it here:\n\n"
        "{url}\n\nThe link works once, until {until}, and logs you out everywhere else. If it was not you, ignore"
        " this: your password stays as it is.\n"
    ),
}


async def put_link_mail(queue: JobQueue, job_id: UUID, person_id: UUID | None, network: str) -> None:
    """Ask for an e-mail with a link. Without a person too, so that strangers cannot tell by the time it takes."""
    data = {"personId": "" if person_id is None else str(person_id), "network": network}
    await queue.put(MAIL_LINK, job_id=job_id.hex, data=data)


def write_mail(link: NewLink, *, sender: str, public_url: str) -> Mail:
    purpose, email = link.person.purpose, link.person.email
    return Mail(
        sender=sender,
        to=email,
        subject=SUBJECTS[purpose],
        text=TEXTS[purpose].format(
            public_url=public_url,
            email=email,
            url=link.make_url(public_url),
            until=f"{link.expires_at:%d %B %Y %H:%M} UTC",
        ),
    )


class LinkMailer:
    """Sends the e-mails that control has asked for."""

    def __init__(self, pool: Pool, settings: MailSettings, clock: Clock, *, public_url: str) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock
        self._public_url = public_url
        self.sent = 0
        self.failed = 0

    async def handle(self, job: JobAttempt) -> None:
        """Make a link and send it; an attempt that fails is repeated with another link."""
        if not job.data.get("personId"):
            return
        if self._settings.smtp_url is None:
            raise PermanentJobError("ADLOOM_SMTP_URL is not set for this worker.")
        now = self._clock.now()
        link = await self._make_link(UUID(job.data["personId"]), job.data.get("network"), now)
        if link is None:
            return
        mail = write_mail(
            link, sender=self._settings.find_sender(self._public_url), public_url=self._public_url
        )
        try:
            await send_mail(parse_smtp_url(self._settings.smtp_url), mail, now=now)
        except MailError as error:
            self.failed += 1
            if error.is_permanent:
                raise PermanentJobError(str(error)) from error
            raise
        self.sent += 1

    async def _make_link(self, person_id: UUID, network: str | None, now: datetime) -> NewLink | None:
        async with self._pool.acquire() as connection, connection.transaction():
            link = await create_link(connection, person_id, now)
            if link is not None:
                author = Author(subject="system:mail", role="system", network=network)
                changes = {"purpose": {"from": None, "to": link.person.purpose.value}}
                entry = NewAuditEntry(AuditSubject("user", str(person_id), None), "link_mailed", changes)
                await audit_store.append(connection, author, [entry], at=now)
        return link
