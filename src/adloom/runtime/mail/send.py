"""Sending an e-mail by SMTP. The server's answer decides whether another attempt can help."""

import asyncio
import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from ipaddress import ip_address
from typing import Final

import msgspec

from adloom.runtime.mail.settings import SmtpServer

SECONDS_MAX: Final = 20.0  # For each step of the conversation.
REFUSED_FOR_GOOD: Final = range(500, 600)


class MailError(Exception):
    """The e-mail was not taken; `is_permanent` says that another attempt would not help."""

    def __init__(self, message: str, *, is_permanent: bool) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A text for one person."""

    sender: str
    to: str
    subject: str
    text: str

    def __repr__(self) -> str:
        """Show nothing: links in it let people in."""
        return "Mail(…)"


async def send_mail(server: SmtpServer, mail: Mail, *, now: datetime) -> None:
    """Hand an e-mail to the server, or raise MailError."""
    message = compose(mail, now=now)
    await asyncio.to_thread(_send, server, message)


def compose(mail: Mail, *, now: datetime) -> EmailMessage:
    message = EmailMessage()
    try:
        message["From"], message["To"] = f"Adloom <{mail.sender}>", mail.to
        message["Subject"], message["Date"] = mail.subject, format_datetime(now)
    except ValueError as error:
        raise MailError(f"The e-mail cannot be written: {error}", is_permanent=True) from error
    message["Message-ID"] = make_msgid(domain=mail.sender.partition("@")[2])
    # No holiday notes, please.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_context(host: str) -> ssl.SSLContext:
    """Check certificates, except of this machine itself: the mail servers of many have made theirs themselves."""
    context = ssl.create_default_context()
    if is_loopback(host):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _send(server: SmtpServer, message: EmailMessage) -> None:
    try:
        with _connect(server) as client:
            if not server.is_tls:
                _begin_tls(client, server)
            if server.user:
                client.login(server.user, server.password)
            client.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        is_permanent = all(code in REFUSED_FOR_GOOD for code in codes)
        raise MailError(f"The server refused the recipient: {codes}.", is_permanent=is_permanent) from error
    except smtplib.SMTPNotSupportedError as error:
        raise MailError(f"The server cannot do it: {error}", is_permanent=True) from error
    except (OSError, smtplib.SMTPException) as error:
        # A wrong password is not permanent: people put it right while the job waits.
        raise MailError(f"The server did not take it: {error!r}.", is_permanent=False) from error


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
    elif server.user and not is_loopback(server.host):
        raise MailError(
            "The server offers no STARTTLS, and a password is not sent in the clear.", is_permanent=True
        )
