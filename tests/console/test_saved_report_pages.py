"""Saved reports in the console: opened by their address, as they were saved."""

from uuid import UUID

from adloom.core.caller import Role
from adloom.core.setting import Secret
from adloom.runtime.mail.settings import MailSettings
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.saved_report.people import PATH, logged_in
from tests.support.builders import NOON
from tests.support.control import ControlPlane, control_settings, running_control


async def test_a_saved_report_is_opened_by_its_address_and_only_by_its_owner(
    console: ControlPlane, ann: Visitor, pool: Pool
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        person = (await admin.get("/admin/accounts")).json()["items"][0]
        placement, banner = await admin.make_placement(), await admin.make_banner(title="Tulips")
        campaign = await admin.make_campaign(name="Spring")
    await EventWriter(pool).write(
        seen(banner, placement, campaign, at=NOON), clicked(banner, placement, campaign, at=NOON)
    )
    async with logged_in(console, person) as client:
        body = {"name": "Client <A>", "groupBy": ["banner"], "period": "today", "columns": ["clicks"]}
        made = await client.made(PATH, body | {"sendEvery": "weekly", "sendWeekday": 5, "metric": "invalid"})
    await pool.execute(
        "INSERT INTO report_sendings (report_id, due_on, failure) SELECT id, '2026-11-13', 'No room' FROM saved_reports"
    )

    page = await ann.get(f"/console/reports?report={made['id']}")
    listed = await ann.get("/console/reports")
    unknown = await ann.get(f"/console/reports?report={UUID(int=1)}")
    odd = await ann.get("/console/reports?report=..%2Fcampaigns")
    await make_person(console, "bob@example.com", Role.VIEWER)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        of_another = await bob.get(f"/console/reports?report={made['id']}")

    assert page.status_code == 200
    for text in ("Tulips", "every week on Friday at 08:00, UTC", "No room", "Download CSV"):
        assert text in page.text
    assert "Without token" not in page.text
    assert "<A>" not in page.text
    assert f"/console/reports?report={made['id']}" in listed.text
    assert "Save report" in listed.text
    assert {unknown.status_code, of_another.status_code} == {404}
    assert odd.status_code == 200, "what is no id is left out"
    assert "Send now" not in page.text, "there is no mail server"


async def test_a_saved_report_can_be_sent_now_where_there_is_a_mail_server(
    database_url: str, redis_url: str
) -> None:
    mail = MailSettings(smtp_url=Secret("smtp://127.0.0.1:9"))
    settings = control_settings(database_url, redis_url, public_url="http://control.test", mail=mail)
    async with running_control(settings, has_console=True) as plane:
        person_id = await make_person(plane, "ann@example.com", Role.ADMIN)
        person = {"id": person_id, "role": "admin", "accountId": None}
        async with logged_in(plane, person) as client, Visitor(plane) as ann:
            made = await client.made(PATH, {"name": "Mine"})
            await ann.log_in("ann@example.com")

            page = await ann.get(f"/console/reports?report={made['id']}")

    assert "Send now" in page.text
