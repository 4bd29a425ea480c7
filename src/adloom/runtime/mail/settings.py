"""The server that takes our e-mail, and the sender that it shows."""

from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

import msgspec

from adloom.core.setting import Secret, SecretValueError, Variable, parse_match

PORTS: Final = {"smtp": 587, "smtps": 465}
EXPECTED: Final = "must be an address like smtp://user:password@host:587 or smtps://user:password@host:465."


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and how to log in there; `is_tls` from the first byte, otherwise by STARTTLS where it offers that."""

    host: str
    port: int
    user: str
    password: str
    is_tls: bool

    def __repr__(self) -> str:
        return f"SmtpServer({self.host}:{self.port})"


def parse_smtp_url(text: str) -> SmtpServer:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise SecretValueError(EXPECTED) from None
    if parts.scheme not in PORTS or not host or parts.path not in {"", "/"} or parts.query:
        raise SecretValueError(EXPECTED)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise SecretValueError("has a user without a password, or a password without a user.")
    return SmtpServer(
        host=host,
        port=port or PORTS[parts.scheme],
        user=user,
        password=password,
        is_tls=parts.scheme == "smtps",
    )


def _check_smtp_url(text: str) -> Secret:
    parse_smtp_url(text)
    return Secret(text)


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Without a server no e-mail is sent, and none is offered."""

    smtp_url: Annotated[Secret | None, Variable("ADLOOM_SMTP_URL", _check_smtp_url)] = None
    sender: Annotated[
        str | None,
        Variable(
            "ADLOOM_MAIL_FROM",
            parse_match(r"[^@\s<>]+@[^@\s<>]+", "an e-mail address like ads@example.com"),
        ),
    ] = None

    @property
    def is_on(self) -> bool:
        return self.smtp_url is not None

    def find_sender(self, public_url: str) -> str:
        """Return the sender of e-mail: as set, or one at the console's host."""
        return self.sender or f"adloom@{urlsplit(public_url).hostname}"
