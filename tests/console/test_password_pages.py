"""The page behind an invitation or a reset."""

import pytest

from adloom.core.caller import Role
from adloom.core.setting import Secret
from adloom.runtime.mail.settings import MailSettings
from tests.console.visitor import Visitor, make_person, redirect_of
from tests.support.control import ControlPlane, control_settings, running_control

NEW = "another good password"


async def make_link(console: ControlPlane, person_id: str) -> str:
    async with console.acting_as(Role.ADMIN) as admin:
        made = await admin.made(f"/admin/accounts/{person_id}/link", {})
    return made["url"]


@pytest.fixture
async def link(console: ControlPlane) -> str:
    return await make_link(console, await make_person(console, "bob@example.com", Role.VIEWER))


def form_of(link: str, **fields: str) -> dict[str, str]:
    return {"token": link.partition("token=")[2], "newPassword": NEW, "again": NEW, **fields}


async def test_a_person_chooses_a_password_and_logs_in(link: str, console: ControlPlane) -> None:
    async with Visitor(console) as bob:
        opened = [await bob.get(link) for _ in range(2)]
        chosen = await bob.post("/console/password", data=form_of(link))
        log_in = await bob.get("/console/login?chosen")
        inside = await bob.log_in("bob@example.com", NEW)
        again = await bob.post("/console/password", data=form_of(link))

    assert [answer.status_code for answer in opened] == [200, 200], "opening it uses nothing up"
    assert "bob@example.com" in opened[0].text
    assert opened[0].headers["cache-control"] == "no-store"
    assert redirect_of(chosen) == (303, "/console/login?chosen")
    assert "Your password is set." in log_in.text
    assert redirect_of(inside) == (303, "/console")
    assert again.status_code == 401
    assert "This link was used before" in again.text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"again": "another one"}, "are not the same"),
        ({"newPassword": "short", "again": "short"}, "must have 10"),
    ],
)
async def test_a_wrong_form_is_shown_again(
    fields: dict[str, str], sentence: str, link: str, console: ControlPlane
) -> None:
    async with Visitor(console) as bob:
        answer = await bob.post("/console/password", data=form_of(link, **fields))
        right = await bob.post("/console/password", data=form_of(link))

    assert answer.status_code == 400
    assert sentence in answer.text
    assert right.status_code == 303


async def test_a_form_of_another_site_uses_nothing_up(link: str, console: ControlPlane) -> None:
    async with Visitor(console) as bob:
        answer = await bob.post(
            "/console/password", data=form_of(link), headers={"Origin": "https://evil.example"}
        )
        right = await bob.post("/console/password", data=form_of(link))

    assert answer.status_code == 403
    assert right.status_code == 303


async def test_addresses_that_are_none_lead_home_and_are_other_sites(console: ControlPlane) -> None:
    async with Visitor(console) as anybody:
        for strange in ("//[", "//\u2100.com"):
            assert (await anybody.get("/console/login", params={"next": strange})).status_code == 200
        refused = await anybody.post(
            "/console/login", headers={"Origin": "http://["}, data={"email": "a@b.c"}
        )

    assert refused.status_code == 403


async def test_a_made_up_link_is_a_sentence(console: ControlPlane) -> None:
    async with Visitor(console) as bob:
        answer = await bob.get("/console/password?token=%00<script>")

    assert answer.status_code == 401
    assert "is too old" in answer.text
    assert "<script>" not in answer.text


async def test_a_forgotten_password_is_asked_for_by_anybody_with_the_same_answer(
    database_url: str, redis_url: str
) -> None:
    mail = MailSettings(smtp_url=Secret("smtp://127.0.0.1:1"))
    settings = control_settings(database_url, redis_url, public_url="http://control.test", mail=mail)
    async with running_control(settings, has_console=True) as plane, Visitor(plane) as visitor:
        await make_person(plane, "bob@example.com", Role.VIEWER)
        log_in, form = await visitor.get("/console/login"), await visitor.get("/console/forgot")
        answers = [
            await visitor.post("/console/forgot", data={"email": email})
            for email in ("bob@example.com", "nobody@example.com", "")
        ]
        foreign = await visitor.post(
            "/console/forgot", data={"email": "bob@example.com"}, headers={"Origin": "https://evil.example"}
        )
        await plane.app.state.mail_queue.refresh_counts()

    assert 'href="/console/forgot"' in log_in.text
    assert form.status_code == 200
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, answers[0].text)}
    assert "If there is an account with this address" in answers[0].text
    assert foreign.status_code == 403
    assert plane.app.state.mail_queue.counts.waiting == 3


async def test_without_a_mail_server_nothing_is_offered(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        log_in = await visitor.get("/console/login")
        asked = [
            await visitor.get("/console/forgot"),
            await visitor.post("/console/forgot", data={"email": "a@b.c"}),
        ]

    assert "Forgot" not in log_in.text
    assert [answer.status_code for answer in asked] == [409, 409]
