"""Links by e-mail: asked for over HTTP, made and sent by the worker's jobs, through a real mail server."""

import asyncio
import re
from collections.abc import AsyncGenerator

import httpx
import pytest

from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.setting import Secret
from adloom.identity.link.mail import MAIL_LINK, LinkMailer
from adloom.runtime.jobs.queue import JobQueue, JobState
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.mail.send import QUEUE
from adloom.runtime.mail.settings import MailSettings
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, control_settings, problem, running_control
from tests.support.eventually import eventually
from tests.support.mail_server import MailServer

EMAIL, PASSWORD, NEW = "ann@example.com", "a good password", "another good password"
PUBLIC_URL = "https://ads.example.com"
LINK = re.compile(rf"{PUBLIC_URL}/console/password\?token=(\S+)")


@pytest.fixture
def mail_settings(mails: MailServer) -> MailSettings:
    return MailSettings(smtp_url=Secret(mails.url))


@pytest.fixture
async def control(
    database_url: str, redis_url: str, mail_settings: MailSettings
) -> AsyncGenerator[ControlPlane]:
    settings = control_settings(database_url, redis_url, mail=mail_settings, public_url=PUBLIC_URL)
    async with running_control(settings) as plane:
        yield plane


@pytest.fixture
async def admin(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADMIN) as client:
        yield client


@pytest.fixture
async def mailer(pool: Pool, redis_url: str, mail_settings: MailSettings) -> AsyncGenerator[LinkMailer]:
    """The part of a worker that sends e-mail."""
    mailer = LinkMailer(pool, mail_settings, ManualClock(NOON), public_url=PUBLIC_URL)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(JobWorker(QUEUE, redis_url, {MAIL_LINK: mailer.handle}).run(stop))
        yield mailer
        stop.set()


async def make_person(admin: Client, **fields: object) -> Json:
    return await admin.made("/admin/accounts", {"email": EMAIL, "role": "viewer", **fields})


async def forgot(client: Client, email: str) -> httpx.Response:
    return await client.post("/auth/forgot-password", json={"email": email})


async def test_an_invitation_goes_by_mail(
    admin: Client, mails: MailServer, mailer: LinkMailer, pool: Pool
) -> None:
    person = await make_person(admin)

    answer = await admin.post(f"/admin/accounts/{person['id']}/mail-link")
    await eventually(lambda: mailer.sent == 1, seconds=30)

    assert answer.status_code == 202
    [message] = mails.mails
    assert (message["To"], message["From"]) == (EMAIL, "Adloom <adloom@ads.example.com>")
    assert "invit" in message["Subject"]
    found = LINK.search(message.get_content())
    assert found
    chosen = await admin.post("/auth/password", json={"token": found[1], "newPassword": NEW})
    assert chosen.status_code == 204
    actions = await pool.fetch("SELECT action, subject FROM audit_entries WHERE noun = 'user' ORDER BY id")
    assert [row["action"] for row in actions] == [
        *("create", "link_asked_for", "link_mailed", "password_set_by_link"),
    ]
    assert actions[2]["subject"] == "system:mail"


async def test_a_forgotten_password_gets_the_same_answer_for_everybody(
    admin: Client, mails: MailServer, mailer: LinkMailer
) -> None:
    await make_person(admin, password=PASSWORD)

    answers = [await forgot(admin, email) for email in ("nobody@example.com", EMAIL.upper())]
    await eventually(lambda: mailer.sent == 1, seconds=30)

    assert {(answer.status_code, answer.content) for answer in answers} == {(202, b"null")}
    assert mails.recipients == [EMAIL]


@pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
async def test_asking_is_limited_for_known_and_unknown_addresses_alike(email: str, admin: Client) -> None:
    await make_person(admin)

    statuses = [(await forgot(admin, email)).status_code for _ in range(4)]

    assert statuses == [202, 202, 202, 429]


async def test_no_token_waits_in_the_queue(admin: Client, control: ControlPlane) -> None:
    await make_person(admin)

    await forgot(admin, EMAIL)

    queue: JobQueue = control.app.state.mail_queue
    [job] = (await queue.list_jobs(JobState.WAITING, first=0, count_max=9)).items
    assert set(job.data) == {"personId", "network"}


async def test_a_mail_that_is_refused_for_now_is_sent_later(
    admin: Client, mails: MailServer, mailer: LinkMailer, control: ControlPlane
) -> None:
    person = await make_person(admin)
    mails.refusals = ["451 Greylisted"]

    await admin.post(f"/admin/accounts/{person['id']}/mail-link")
    await eventually(lambda: mailer.failed == 1, seconds=30)

    queue: JobQueue = control.app.state.mail_queue
    while queue.counts.delayed == 0:
        await queue.refresh_counts()
    assert mails.mails == []


async def test_without_a_mail_server_none_is_offered(database_url: str, redis_url: str) -> None:
    async with (
        running_control(control_settings(database_url, redis_url)) as plane,
        plane.acting_as(Role.ADMIN) as admin,
    ):
        person = await make_person(admin)
        link = await admin.made(f"/admin/accounts/{person['id']}/link", {})

        assert link["canBeMailed"] is False
        problem(await admin.post(f"/admin/accounts/{person['id']}/mail-link"), 409, "MAIL_NOT_SET_UP")
        problem(await forgot(admin, EMAIL), 409, "MAIL_NOT_SET_UP")
