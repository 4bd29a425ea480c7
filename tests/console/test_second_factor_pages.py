"""The pages between the password and the console."""

import base64
import re
from collections.abc import AsyncGenerator
from datetime import timedelta

import httpx
import pytest

from adloom.core.caller import Role
from adloom.core.setting import Secret
from adloom.identity.pending import LIFETIME, read_pending
from adloom.identity.second_factor.totp import STEP_SECONDS, make_code
from adloom.runtime.log_in_settings import LogInSettings
from tests.console.visitor import Visitor, make_person, redirect_of
from tests.support.control import SECRET, ControlPlane, control_settings, problem, running_control

PENDING = re.compile(r'name="pending" value="([^"]+)"')
TYPED = re.compile(r"<code>([A-Z2-7]+)</code>")


@pytest.fixture
async def console(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    """A control plane that requires a second factor of admins."""
    settings = control_settings(
        database_url,
        redis_url,
        public_url="http://control.test",
        sealing_secrets=(Secret("a-secret-that-seals-things-for-the-tests"),),
        log_in=LogInSettings(second_factor_roles=(Role.ADMIN,)),
    )
    async with running_control(settings, has_console=True) as plane:
        await make_person(plane, "ann@example.com", Role.ADMIN)
        yield plane


def pending_of(answer: httpx.Response) -> str:
    found = PENDING.search(answer.text)
    assert found, answer.text
    return found[1]


class App:
    """An authenticator app that has read a secret off a page."""

    def __init__(self, page: httpx.Response, plane: ControlPlane) -> None:
        found = TYPED.search(page.text)
        assert found, page.text
        self._secret = base64.b32decode(found[1])
        self._plane = plane

    def code(self) -> str:
        return make_code(self._secret, int(self._plane.clock.now().timestamp()) // STEP_SECONDS)


async def set_up(visitor: Visitor, plane: ControlPlane) -> tuple[App, httpx.Response]:
    asked = await visitor.log_in("ann@example.com", goal="/console/jobs")
    app = App(asked, plane)
    fields = {"pending": pending_of(asked), "code": app.code(), "next": "/console/jobs"}
    answer = await visitor.post("/console/set-up", data=fields)
    plane.clock.advance(timedelta(seconds=STEP_SECONDS))
    return app, answer


async def test_a_role_that_needs_one_sets_it_up_at_the_log_in(console: ControlPlane) -> None:
    async with Visitor(console) as ann:
        asked = await ann.log_in("ann@example.com")
        wrong = await ann.post("/console/set-up", data={"pending": pending_of(asked), "code": "0"})
        assert ann.token is None
        _, shown = await set_up(ann, console)

        assert (await ann.get("/console/jobs")).status_code == 200
    assert "<svg" in asked.text
    assert (wrong.status_code, pending_of(wrong)) == (400, pending_of(asked))
    assert TYPED.findall(wrong.text) == TYPED.findall(asked.text)
    assert len(re.findall(r"^(?:<pre[^>]*>)?(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", shown.text, re.MULTILINE)) == 10
    assert 'action="/console/jobs"' in shown.text


async def test_a_log_in_asks_for_the_code(console: ControlPlane) -> None:
    async with Visitor(console) as first:
        app, _ = await set_up(first, console)

    async with Visitor(console) as ann:
        asked = await ann.log_in("ann@example.com")
        fields = {"pending": pending_of(asked), "next": "/console/jobs"}
        wrong = await ann.post("/console/code", data={**fields, "code": "000000"})
        assert ann.token is None
        right = await ann.post("/console/code", data={**fields, "code": app.code()})

        assert redirect_of(right) == (303, "/console/jobs")
        assert (await ann.get("/console/jobs")).status_code == 200
    assert wrong.status_code == 401
    assert "The code is wrong" in wrong.text
    assert "<svg" not in asked.text, "the secret is never shown again"


async def test_what_is_half_done_lets_nobody_in(console: ControlPlane) -> None:
    async with Visitor(console) as ann:
        app, _ = await set_up(ann, console)
        pending = pending_of(await ann.log_in("ann@example.com"))
        bearer = {"Authorization": f"Bearer {pending}"}
        problem(await ann.get("/admin/accounts/me", headers=bearer), 401, "UNAUTHENTICATED")
        with pytest.raises(Exception, match="log in again"):
            read_pending(SECRET, "another kind", pending, now=console.clock.now())

        console.clock.advance(LIFETIME)
        late = await ann.post("/console/code", data={"pending": pending, "code": app.code()})
        made_up = await ann.post("/console/code", data={"pending": "made up", "code": app.code()})

    assert (late.status_code, made_up.status_code) == (401, 401)
    assert "This took too long" in late.text


async def test_a_second_set_up_cannot_replace_the_first(console: ControlPlane) -> None:
    async with Visitor(console) as ann:
        pending = pending_of(await ann.log_in("ann@example.com"))
        app, _ = await set_up(ann, console)

        again = await ann.post("/console/set-up", data={"pending": pending, "code": app.code()})

    assert again.status_code == 409


async def test_ones_own_page_says_so(console: ControlPlane) -> None:
    async with Visitor(console) as ann:
        await set_up(ann, console)
        page = await ann.get("/console/account")

    assert page.status_code == 200
    assert "10 recovery codes are left" in page.text
