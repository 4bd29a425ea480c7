"""A mail server on this machine: it keeps what it is given."""

import asyncio
import contextlib
import ssl
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adloom.core.clock import SystemClock
from adloom.core.setting import Secret
from adloom.identity.link.mail import MAIL_LINK, LinkMailer
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.mail.send import QUEUE
from adloom.runtime.mail.settings import MailSettings
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.support.eventually import eventually

USER, PASSWORD = "adloom", "p@ss:word/of the tests"


class MailServer:
    """What was sent, whether by TLS, and what is refused."""

    def __init__(self) -> None:
        self.port = find_port()
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.was_tls: list[bool] = []
        self.refusals: list[str] = []
        self.drops_connection = False  # After it has taken an e-mail, without a word.

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_RCPT(  # noqa: N802 - the library's own
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - the library's own
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.mails.append(message)
        self.recipients += envelope.rcpt_tos
        self.was_tls.append(server.transport.get_extra_info("ssl_object") is not None)
        if self.drops_connection:
            server.transport.abort()
        return "250 OK"


def _authenticate(
    _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: LoginPassword
) -> AuthResult:
    is_right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=False)


@contextlib.contextmanager
def a_mail_server(*, tls: ssl.SSLContext | None = None, is_tls_first: bool = False) -> Generator[MailServer]:
    """Run a mail server; with a context it offers STARTTLS, and takes mail only from who has logged in."""
    server = MailServer()
    options: dict[str, Any] = {}
    if tls is not None:
        # Where all is TLS, the library does not know it, and warns of passwords in the clear.
        options = {"auth_required": not is_tls_first, "authenticator": _authenticate}
        options |= {"auth_require_tls": False} if is_tls_first else {"tls_context": tls}
    controller = Controller(
        server,
        hostname="127.0.0.1",
        port=server.port,
        ssl_context=tls if is_tls_first else None,
        **options,
    )
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


async def send_one_mail(pool: Pool, redis_url: str, server: MailServer, *, public_url: str) -> None:
    """Do what a worker does with a mail that was asked for."""
    settings = MailSettings(smtp_url=Secret(server.url))
    mailer = LinkMailer(pool, settings, SystemClock(), public_url=public_url)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(JobWorker(QUEUE, redis_url, {MAIL_LINK: mailer.handle}).run(stop))
        await eventually(lambda: mailer.sent == 1, seconds=30)
        stop.set()


def make_tls(folder: Path) -> ssl.SSLContext:
    """Make a certificate that nobody knows, as mail servers of one machine have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail.test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "mail.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
