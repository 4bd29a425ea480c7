"""E-mail by SMTP, to a real server on this machine."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from adloom.core.setting import SecretValueError
from adloom.runtime.mail.send import Mail, MailError, compose, make_context, send_mail
from adloom.runtime.mail.settings import SmtpServer, parse_smtp_url
from adloom.runtime.ports import find_port
from tests.support.builders import NOON
from tests.support.mail_server import PASSWORD, USER, MailServer, a_mail_server, make_tls

MAIL = Mail(
    sender="ads@example.com", to="ann@example.com", subject="Grüße", text="Hello,\n\nhttps://x.test/?a=b\n"
)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with a_mail_server() as running:
        yield running


async def test_a_mail_arrives_as_it_was_written(server: MailServer) -> None:
    await send_mail(parse_smtp_url(server.url), MAIL, now=NOON)

    [message] = server.mails
    assert server.recipients == ["ann@example.com"]
    assert (message["From"], message["To"], message["Subject"]) == (
        "Adloom <ads@example.com>",
        "ann@example.com",
        "Grüße",
    )
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content().replace("\r\n", "\n") == MAIL.text


@pytest.mark.parametrize("is_tls_first", [False, True], ids=["starttls", "smtps"])
async def test_a_password_is_sent_by_tls(*, is_tls_first: bool, tmp_path: Path) -> None:
    with a_mail_server(tls=make_tls(tmp_path), is_tls_first=is_tls_first) as server:
        scheme = "smtps" if is_tls_first else "smtp"
        url = f"{scheme}://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}"
        await send_mail(parse_smtp_url(url), MAIL, now=NOON)
        with pytest.raises(MailError) as refused:
            await send_mail(parse_smtp_url(url.replace(USER, "somebody")), MAIL, now=NOON)

    assert server.was_tls == [True]
    assert not refused.value.is_permanent
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(("answer", "is_permanent"), [("450 Later", False), ("550 No such person", True)])
async def test_the_answer_says_whether_to_try_again(
    *, answer: str, is_permanent: bool, server: MailServer
) -> None:
    server.refusals = [answer]

    with pytest.raises(MailError) as refused:
        await send_mail(parse_smtp_url(server.url), MAIL, now=NOON)

    assert refused.value.is_permanent is is_permanent
    assert server.mails == []


async def test_a_server_that_is_away_is_tried_again() -> None:
    with pytest.raises(MailError) as refused:
        await send_mail(parse_smtp_url(f"smtp://127.0.0.1:{find_port()}"), MAIL, now=NOON)

    assert not refused.value.is_permanent


def test_nobody_can_add_headers() -> None:
    with pytest.raises(MailError):
        compose(Mail(sender="a@b.c", to="a@b.c\r\nBcc: d@e.f", subject="x", text="y"), now=NOON)


def test_certificates_are_checked_but_for_this_machine() -> None:
    assert make_context("mail.example.com").verify_mode is ssl.CERT_REQUIRED
    assert make_context("mail.example.com").check_hostname
    assert make_context("localhost").verify_mode is ssl.CERT_NONE


def test_an_address_of_a_server_is_read() -> None:
    assert parse_smtp_url("smtp://u%40x:p%3A@mail.example.com") == SmtpServer(
        host="mail.example.com", port=587, user="u@x", password="p:", is_tls=False
    )
    assert parse_smtp_url("smtps://mail.example.com").port == 465


@pytest.mark.parametrize(
    "text",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp:///x",
        "smtp://user@host",
        "smtp://host:x",
        "smtp://h/p",
    ],
)
def test_a_wrong_address_is_not_repeated(text: str) -> None:
    with pytest.raises(SecretValueError) as refused:
        parse_smtp_url(text)

    assert text not in str(refused.value)
