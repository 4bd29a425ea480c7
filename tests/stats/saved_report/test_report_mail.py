"""Reports by e-mail, through a real mail server: once for a day, with the rights of the owner, and never twice."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import date, timedelta
from uuid import UUID

import pytest

from adloom.core.clock import ManualClock
from adloom.core.currency import Currency
from adloom.core.setting import Secret
from adloom.runtime.jobs.queue import JobQueue, JobState
from adloom.runtime.jobs.worker import JobAttempt, JobWorker, PermanentJobError
from adloom.runtime.mail.send import QUEUE, MailError, open_mail_queue
from adloom.runtime.mail.settings import MailSettings
from adloom.runtime.postgres import Pool
from adloom.stats.saved_report.send import MAIL_REPORT, DueReports, ReportMailer
from adloom.stats.saved_report.store import make_due_sending
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.saved_report.people import PATH, a_person, logged_in
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, control_settings, problem, running_control
from tests.support.eventually import eventually
from tests.support.mail_server import MailServer

PUBLIC_URL = "https://ads.example.com"
LOOK = JobAttempt(name="look", id="look", data={}, attempt=1)
TODAY = date(2026, 11, 15)


@pytest.fixture
def settings(mails: MailServer) -> MailSettings:
    return MailSettings(smtp_url=Secret(mails.url))


@pytest.fixture
async def control(database_url: str, redis_url: str, settings: MailSettings) -> AsyncGenerator[ControlPlane]:
    async with running_control(control_settings(database_url, redis_url, mail=settings)) as plane:
        yield plane


@pytest.fixture
async def queue(redis_url: str) -> AsyncGenerator[JobQueue]:
    async with open_mail_queue(redis_url) as opened:
        yield opened


def a_mailer(pool: Pool, settings: MailSettings, clock: ManualClock) -> ReportMailer:
    return ReportMailer(
        pool, settings, clock, public_url=PUBLIC_URL, currency=Currency("EUR"), counts_unbound=True
    )


async def save(client: Client, **fields: object) -> Json:
    """Save a report that is due at noon, which it is now."""
    return await client.made(PATH, {"name": "Mine", "sendEvery": "daily", "sendHour": 12, **fields})


def a_job(report: Json, due_on: date = TODAY) -> JobAttempt:
    data = {"reportId": report["id"], "dueOn": str(due_on), "dueAt": NOON.isoformat()}
    return JobAttempt(name=MAIL_REPORT, id="job", data=data, attempt=1)


async def test_a_report_is_sent_on_its_day_once(  # noqa: PLR0917, PLR0913 - a whole life
    control: ControlPlane,
    admin: Client,
    writer: EventWriter,
    mails: MailServer,
    pool: Pool,
    redis_url: str,
    queue: JobQueue,
    settings: MailSettings,
) -> None:
    ann = await a_person(admin, timeZone="Europe/Berlin")
    banner, placement = await admin.make_banner(), await admin.make_placement()
    campaign = await admin.make_campaign(name="=Spring <b> & Süß")
    await writer.write(*[seen(banner, placement, campaign)] * 4, clicked(banner, placement, campaign))
    async with logged_in(control, ann) as client:
        made = await save(
            client, groupBy=["campaign"], period="yesterday", recipients=["client@example.com"], sendHour=13
        )
    clock = ManualClock(NOON - timedelta(minutes=1))
    due, mailer = DueReports(pool, queue, settings, clock), a_mailer(pool, settings, clock)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(JobWorker(QUEUE, redis_url, {MAIL_REPORT: mailer.handle}).run(stop))
        await due.handle(LOOK)  # A minute too early.
        clock.advance(timedelta(minutes=1))
        for _ in range(3):
            await due.handle(LOOK)
        await eventually(lambda: mailer.sent == 1, seconds=30)
        await due.handle(LOOK)
        clock.advance(timedelta(days=1))
        await due.handle(LOOK)
        await eventually(lambda: mailer.sent == 2, seconds=30)
        stop.set()
    async with logged_in(control, ann) as client:
        shown = (await client.get(f"{PATH}/{made['id']}")).json()

    assert made["nextSendAt"] == "2026-11-16T12:00:00Z", "noon has begun"
    mail, other = mails.mails
    assert mails.recipients == ["admin@example.com", "client@example.com"] * 2
    assert (mail["to"], mail["bcc"]) == ("admin@example.com", None)
    assert mail["subject"] == "Mine: 14 November 2026"
    assert other["subject"] == "Mine: 15 November 2026"
    assert mail["message-id"] != other["message-id"]
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert "=Spring <b> & Süß" in text.get_content()
    assert "=Spring &lt;b&gt; &amp; Süß" in html.get_content()
    assert f"{PUBLIC_URL}/console/reports?report={made['id']}" in text.get_content()
    assert "25.00%" in text.get_content()
    [file] = mail.iter_attachments()
    assert file.get_filename() == "adloom-report-2026-11-14.csv"
    lines = file.get_content().splitlines()
    assert lines[0].startswith("\ufeffcampaignId,campaignName,impressions")
    assert lines[1].startswith(f"{campaign['id']},'=Spring <b> & Süß,4,1,0.25")
    assert lines[1].endswith(",0.00,EUR")
    assert (shown["lastSentAt"], shown["lastFailure"]) == ("2026-11-16T12:00:00Z", None)


async def test_it_is_never_sent_twice(
    control: ControlPlane, admin: Client, mails: MailServer, pool: Pool, settings: MailSettings
) -> None:
    ann = await a_person(admin)
    async with logged_in(control, ann) as client:
        twice = await save(client, name="By two workers")
        killed = await save(client, name="Of a worker that was killed")
        broken = await save(client, name="On a connection that broke")
        refused = await save(client, name="Refused for now")
    clock = ManualClock(NOON)
    one, two = a_mailer(pool, settings, clock), a_mailer(pool, settings, clock)

    await asyncio.gather(one.handle(a_job(twice)), two.handle(a_job(twice)))
    await one.handle(a_job(twice))
    assert len(mails.mails) == 1

    assert await make_due_sending(pool, UUID(killed["id"]), TODAY).begin(NOON)
    await two.handle(a_job(killed))
    assert len(mails.mails) == 1

    mails.drops_connection = True
    with pytest.raises(PermanentJobError):
        await one.handle(a_job(broken))
    mails.drops_connection = False
    await two.handle(a_job(broken))
    assert len(mails.mails) == 2, "the server had taken it"

    mails.refusals.append("451 Come back later")
    with pytest.raises(MailError):
        await one.handle(a_job(refused))
    await two.handle(a_job(refused))
    assert len(mails.mails) == 3
    async with logged_in(control, ann) as client:
        shown = {one["name"]: one for one in (await client.get(PATH)).json()["items"]}
    assert "may have been sent" in shown["On a connection that broke"]["lastFailure"]
    assert shown["Refused for now"]["lastFailure"] is None
    assert shown["Refused for now"]["lastSentAt"] is not None


async def test_it_is_sent_with_the_rights_of_now_or_not_at_all(  # noqa: PLR0917, PLR0913 - what it needs
    control: ControlPlane,
    admin: Client,
    writer: EventWriter,
    mails: MailServer,
    pool: Pool,
    queue: JobQueue,
    settings: MailSettings,
) -> None:
    shop = await admin.make_advertiser()
    placement, banner = await admin.make_placement(), await admin.make_banner(title="Secret")
    own = await admin.make_banner(title="Own", advertiserId=shop["id"])
    await writer.write(seen(banner, placement), seen(own, placement))
    ann = await a_person(admin)
    await a_person(admin, email="another@example.com")  # The last admin cannot be demoted.
    async with logged_in(control, ann) as client:
        report = await save(client, groupBy=["banner"], recipients=["client@example.com"])
    mailer = a_mailer(pool, settings, ManualClock(NOON))
    role = {"role": "advertiser", "accountId": shop["id"]}
    await admin.put(f"/admin/accounts/{ann['id']}/role", json=role)

    await mailer.handle(a_job(report))

    [mail] = mails.mails
    assert mails.recipients == ["admin@example.com"], "only an admin has it sent to others"
    assert "Own" in mail.as_string()
    assert "Secret" not in mail.as_string()
    # Nobody gets anything while the advertiser is deleted, or the account disabled.
    due = DueReports(pool, queue, settings, ManualClock(NOON + timedelta(days=1)))
    tomorrow = a_job(report, TODAY + timedelta(days=1))
    await admin.delete(f"/admin/advertisers/{shop['id']}")
    await due.handle(LOOK)
    await mailer.handle(tomorrow)
    await admin.post(f"/admin/advertisers/{shop['id']}/restore")
    await admin.patch(f"/admin/accounts/{ann['id']}/disable")
    await due.handle(LOOK)
    await mailer.handle(tomorrow)
    assert (await queue.list_jobs(JobState.WAITING, first=0, count_max=10)).total_count == 0
    assert len(mails.mails) == 1


async def test_without_a_mail_server_it_is_skipped_with_a_notice(
    control: ControlPlane, admin: Client, mails: MailServer, pool: Pool, queue: JobQueue
) -> None:
    ann = await a_person(admin)
    async with logged_in(control, ann) as client:
        report = await save(client)
    off = MailSettings()
    clock = ManualClock(NOON)

    await DueReports(pool, queue, off, clock).handle(LOOK)
    await a_mailer(pool, off, clock).handle(a_job(report, TODAY - timedelta(days=1)))

    async with logged_in(control, ann) as client:
        shown = (await client.get(f"{PATH}/{report['id']}")).json()
    assert "ADLOOM_SMTP_URL" in shown["lastFailure"]
    assert shown["lastSentAt"] is None
    assert mails.mails == []
    assert (await queue.list_jobs(JobState.WAITING, first=0, count_max=10)).total_count == 0


async def test_a_report_is_sent_now_when_its_owner_asks(  # noqa: PLR0917, PLR0913 - a whole life
    control: ControlPlane,
    admin: Client,
    mails: MailServer,
    pool: Pool,
    redis_url: str,
    settings: MailSettings,
) -> None:
    ann, bob = await a_person(admin), await a_person(admin, email="bob@example.com")
    clock = ManualClock(NOON)
    mailer, stop = a_mailer(pool, settings, clock), asyncio.Event()
    async with logged_in(control, ann) as client, logged_in(control, bob) as other:
        report = await client.made(PATH, {"name": "Mine", "recipients": ["client@example.com"]})
        path = f"{PATH}/{report['id']}"

        asked = await asyncio.gather(*(client.post(f"{path}/send") for _ in range(3)))
        refused = await other.post(f"{path}/send")
        async with asyncio.TaskGroup() as group:
            group.create_task(JobWorker(QUEUE, redis_url, {MAIL_REPORT: mailer.handle}).run(stop))
            await eventually(lambda: mailer.sent == 1, seconds=30)
            stop.set()
        sent = (await client.get(path)).json()
        control.clock.advance(timedelta(minutes=2))
        assert (await client.post(f"{path}/send")).status_code == 202, (
            "a minute later it may be asked for again"
        )
        again = await pool.fetchval("SELECT id FROM report_requests WHERE begun_at IS NULL")
        job = {"reportId": report["id"], "requestId": str(again), "dueAt": NOON.isoformat()}
        mails.refusals += ["550 No"] * 2
        with pytest.raises(PermanentJobError):
            await mailer.handle(JobAttempt(name=MAIL_REPORT, id="job", data=job, attempt=1))
        failed = (await client.get(path)).json()

    assert sorted(answer.status_code for answer in asked) == [202, 429, 429]
    assert max(int(answer.headers.get("retry-after", 0)) for answer in asked) in range(1, 62)
    problem(refused, 404, "SAVED_REPORT_NOT_FOUND")
    assert mails.recipients[:2] == ["admin@example.com", "client@example.com"]
    assert len(mails.mails) == 1
    assert (sent["lastSentAt"], sent["lastFailure"]) == ("2026-11-15T12:00:00Z", None)
    assert "550" in failed["lastFailure"]


async def test_without_a_mail_server_nothing_is_sent_now(
    admin: Client, database_url: str, redis_url: str
) -> None:
    ann = await a_person(admin)
    async with (
        running_control(control_settings(database_url, redis_url)) as plane,
        logged_in(plane, ann) as client,
    ):
        report = await client.made(PATH, {"name": "Mine"})

        answer = await client.post(f"{PATH}/{report['id']}/send")

    assert "ADLOOM_SMTP_URL" in problem(answer, 409, "MAIL_NOT_SET_UP")["message"]


async def test_what_could_not_be_put_into_the_queue_may_be_asked_for_again_at_once(
    admin: Client, database_url: str, settings: MailSettings
) -> None:
    ann = await a_person(admin)
    async with (
        running_control(control_settings(database_url, "redis://127.0.0.1:1/0", mail=settings)) as plane,
        logged_in(plane, ann) as client,
    ):
        report = await client.made(PATH, {"name": "Mine"})

        for _ in range(2):
            problem(await client.post(f"{PATH}/{report['id']}/send"), 503, "UNAVAILABLE")

        shown = (await client.get(f"{PATH}/{report['id']}")).json()

    assert "queue" in shown["lastFailure"]
