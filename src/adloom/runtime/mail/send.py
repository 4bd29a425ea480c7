"""The queue of e-mail, and sending one by SMTP.

A job has the recipient and the reason; the worker writes the text when it sends it. The server's answer decides whether
another attempt can help.
"""

import asyncio
import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from functools import partial
from typing import Final

import msgspec

from adloom.runtime.jobs.queue import open_queue
from adloom.runtime.mail.settings import SmtpServer
from adloom.runtime.outbound.address import is_this_machine

QUEUE: Final = "mail"
ENDED_KEPT: Final = 100

# 15, 30, 60 … seconds between the attempts: a quarter of an hour in all, as greylisting asks for.
open_mail_queue: Final = partial(
    open_queue,
    QUEUE,
    attempts_max=7,
    backoff_milliseconds=15_000,
    done_kept=ENDED_KEPT,
    dead_kept=ENDED_KEPT,
)


SECONDS_MAX: Final = 20.0  # For each step of the conversation.
REFUSED_FOR_GOOD: Final = range(500, 600)


class MailError(Exception):
    """The e-mail was not taken; `is_permanent` says that another attempt would not help.

    `is_doubtful`: the server was being handed it when the connection broke, and may have taken it.
    """

    def __init__(self, message: str, *, is_permanent: bool, is_doubtful: bool = False) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent
        self.is_doubtful = is_doubtful


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file in an e-mail."""

    name: str
    media_type: str
    data: bytes


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A text for one person, and for others whom nobody sees in it; `id` makes it the same e-mail if it comes twice."""

    sender: str
    to: str
    subject: str
    text: str
    html: str = ""
    attachments: tuple[Attachment, ...] = ()
    others: tuple[str, ...] = ()
    id: str = ""

    def __repr__(self) -> str:
        """Show nothing: links in it let people in."""
        return "Mail(…)"


async def send_mail(server: SmtpServer, mail: Mail, *, now: datetime) -> list[str]:
    """Hand an e-mail to the server, or raise MailError; return the addresses that it refused, if not all."""
    message = compose(mail, now=now)
    return await asyncio.to_thread(_send, server, message)


def compose(mail: Mail, *, now: datetime) -> EmailMessage:
    message = EmailMessage()
    try:
        message["From"], message["To"] = f"Adloom <{mail.sender}>", mail.to
        message["Subject"], message["Date"] = mail.subject, format_datetime(now)
        if mail.others:
            message["Bcc"] = ", ".join(mail.others)  # `send_message` leaves the header out.
    except ValueError as error:
        raise MailError(f"The e-mail cannot be written: {error}", is_permanent=True) from error
    domain = mail.sender.partition("@")[2]
    message["Message-ID"] = f"<{mail.id}@{domain}>" if mail.id else make_msgid(domain=domain)
    # No holiday notes, please.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    if mail.html:
        message.add_alternative(mail.html, subtype="html")
    for one in mail.attachments:
        kind, _, subkind = one.media_type.partition("/")
        params = {"charset": "utf-8"} if kind == "text" else None
        message.add_attachment(one.data, maintype=kind, subtype=subkind, filename=one.name, params=params)
    return message


def make_context(host: str) -> ssl.SSLContext:
    """Check certificates, except of this machine itself: the mail servers of many have made theirs themselves."""
    context = ssl.create_default_context()
    if is_this_machine(host):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _send(server: SmtpServer, message: EmailMessage) -> list[str]:
    is_handed = False
    refused: list[str] | None = None  # Known when the server has taken it.
    try:
        with _connect(server) as client:
            if not server.is_tls:
                _begin_tls(client, server)
            if server.user:
                client.login(server.user, server.password)
            is_handed = True
            refused = list(client.send_message(message))
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        is_permanent = all(code in REFUSED_FOR_GOOD for code in codes)
        raise MailError(f"The server refused the recipient: {codes}.", is_permanent=is_permanent) from error
    except smtplib.SMTPNotSupportedError as error:
        raise MailError(f"The server cannot do it: {error}", is_permanent=True) from error
    except (OSError, smtplib.SMTPException) as error:
        # A wrong password is not permanent: people put it right while the job waits. An answer leaves no doubt.
        if refused is None:
            is_doubtful = is_handed and not isinstance(error, smtplib.SMTPResponseException)
            message_text = f"The server did not take it: {error!r}."
            raise MailError(message_text, is_permanent=False, is_doubtful=is_doubtful) from error
    return refused or []


def _connect(server: SmtpServer) -> smtplib.SMTP:
    if server.is_tls:
        return smtplib.SMTP_SSL(
            server.host, server.port, timeout=SECONDS_MAX, context=make_context(server.host)
        )
    return smtplib.SMTP(server.host, server.port, timeout=SECONDS_MAX)


def _begin_tls(client: smtplib.SMTP, server: SmtpServer) -> None:
    client.ehlo()
    if client.has_extn("starttls"):
        client.starttls(context=make_context(server.host))
        client.ehlo()
    elif server.user and not is_this_machine(server.host):
        raise MailError(
            "The server offers no STARTTLS, and a password is not sent in the clear.", is_permanent=True
        )
