"""Console sessions: logging in, staying logged in, and what ends a session."""

from datetime import timedelta

import httpx
import pytest

from adloom.core.caller import Role
from adloom.identity.console_sessions import IDLE_MAX, LIFETIME_MAX
from adloom.identity.first_admin import WELCOME_LIFETIME, create_welcome
from adloom.runtime.auth.fair_turns import FairTurns
from adloom.runtime.auth.passwords import REFUSAL, Passwords
from adloom.runtime.postgres import Pool
from tests.console.visitor import PASSWORD, Visitor, make_person, redirect_of
from tests.support.control import ControlPlane, control_settings, error_fields, problem, running_control
from tests.support.for_each import for_each

LOGIN = "/console/login"


async def test_a_visitor_without_a_session_is_sent_to_the_log_in_and_back(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        assert redirect_of(await visitor.get("/console")) == (303, LOGIN)
        there = redirect_of(await visitor.get("/console/system?tab=keys"))

    assert there == (303, f"{LOGIN}?next=/console/system%3Ftab%3Dkeys")


async def test_the_right_password_opens_the_requested_page(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.log_in("ann@example.com", goal="/console/system?tab=keys")

        assert redirect_of(answer) == (303, "/console/system?tab=keys")
        assert (await visitor.get("/console/system?tab=keys")).status_code == 200


async def test_scripts_and_other_sites_cannot_use_the_cookie(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.log_in("ann@example.com")

    flags = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", f"max-age={7 * 24 * 3600}"} <= flags
    assert "secure" not in flags


async def test_with_https_the_cookie_is_secure(database_url: str, redis_url: str) -> None:
    settings = control_settings(database_url, redis_url, public_url="https://control.test")
    async with running_control(settings, has_console=True) as plane, Visitor(plane) as visitor:
        await make_person(plane, "ann@example.com", Role.ADMIN)
        answer = await visitor.log_in("ann@example.com")

    assert "; secure" in answer.headers["set-cookie"].lower()


async def test_only_the_hash_of_a_token_is_stored(ann: Visitor, pool: Pool) -> None:
    [row] = await pool.fetch("SELECT token_hash FROM console_sessions")

    assert ann.token is not None
    assert ann.token.encode() not in row["token_hash"]
    assert len(row["token_hash"]) == 32


@pytest.mark.parametrize(
    ("email", "password"), [("ann@example.com", "a wrong password"), ("bob@example.com", PASSWORD)]
)
async def test_a_wrong_password_shows_the_error_of_the_api(
    email: str, password: str, console: ControlPlane
) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.log_in(email, password)
        by_api = await visitor.post("/auth/login", json={"email": email, "password": password})

    assert answer.status_code == 401
    assert by_api.json()["message"] in answer.text
    assert "set-cookie" not in answer.headers
    assert email in answer.text, "the address need not be typed again"


@for_each(
    "goal",
    [
        "https://evil.example/",
        "//evil.example/console",
        "/\\evil.example",
        "/admin/campaigns",
        "/console/../admin",
        "/consolation",
        "javascript:alert(1)",
        "/console/login",
        "/console\nSet-Cookie: a=b",
        "/console/" + "x" * 3_000,
    ],
)
async def test_a_log_in_never_redirects_to_another_site(goal: str, console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        assert redirect_of(await visitor.log_in("ann@example.com", goal=goal)) == (303, "/console")


@for_each(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_a_form_from_another_site_is_refused(headers: dict[str, str], console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.log_in("ann@example.com", **headers)

        assert answer.status_code == 403
        assert visitor.token is None


async def test_a_form_from_our_site_is_accepted(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        answer = await visitor.log_in("ann@example.com", Origin="http://control.test")

    assert answer.status_code == 303


async def test_log_in_attempts_share_the_rate_limit_of_the_api(database_url: str, redis_url: str) -> None:
    settings = control_settings(database_url, redis_url, rate_limit_permits_per_minute=3)
    async with running_control(settings, has_console=True) as plane, Visitor(plane) as visitor:
        statuses = [(await visitor.log_in("ann@example.com")).status_code for _ in range(3)]
        answer = await visitor.log_in("ann@example.com")
        by_api = await visitor.post("/auth/login", json={"email": "a", "password": "b"})

    assert statuses == [401, 401, 401]
    assert (answer.status_code, by_api.status_code) == (429, 429)
    assert int(answer.headers["retry-after"]) > 0
    assert "Too many attempts" in answer.text


async def test_a_log_in_that_waits_for_too_long_is_refused(console: ControlPlane) -> None:
    passwords: Passwords = console.app.state.passwords
    passwords.turns = FairTurns(1, refusal=REFUSAL, wait_seconds_max=0.01)
    async with Visitor(console) as visitor, passwords.turns.hold("others", is_known=False):
        answer = await visitor.log_in("ann@example.com")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert REFUSAL in answer.text


async def test_an_idle_session_expires(ann: Visitor, console: ControlPlane) -> None:
    console.clock.advance(IDLE_MAX)

    assert redirect_of(await ann.get("/console")) == (303, LOGIN)


async def test_an_active_session_lasts_but_not_forever(ann: Visitor, console: ControlPlane) -> None:
    step = IDLE_MAX - timedelta(hours=1)
    days = 0
    while (await ann.get("/console")).status_code == 200:
        console.clock.advance(step)
        days += 1

    assert days == -(-LIFETIME_MAX // step)


async def test_a_log_out_ends_the_session_for_good(ann: Visitor, console: ControlPlane) -> None:
    token = ann.token
    answer = await ann.post("/console/logout")

    assert redirect_of(answer) == (303, f"{LOGIN}?out")
    assert ann.token is None
    async with Visitor(console) as thief:
        thief.cookies.set("adloom_console", token or "")
        assert redirect_of(await thief.get("/console")) == (303, LOGIN)


async def test_another_site_cannot_log_a_user_out(ann: Visitor) -> None:
    answer = await ann.post("/console/logout", headers={"Origin": "https://evil.example"})

    assert answer.status_code == 403
    assert (await ann.get("/console")).status_code == 200


async def test_a_disabled_user_is_logged_out_at_once(console: ControlPlane) -> None:
    person_id = await make_person(console, "bob@example.com", Role.VIEWER)
    async with Visitor(console) as bob, console.acting_as(Role.ADMIN) as admin:
        await bob.log_in("bob@example.com")
        await admin.patch(f"/admin/accounts/{person_id}/disable")

        assert redirect_of(await bob.get("/console")) == (303, LOGIN)
        assert (await bob.log_in("bob@example.com")).status_code == 401
        await admin.patch(f"/admin/accounts/{person_id}/enable")
        assert (await bob.log_in("bob@example.com")).status_code == 303


async def use_link(visitor: Visitor, token: str, **headers: str) -> httpx.Response:
    """Press the button on the page that the link opens."""
    return await visitor.post("/console/welcome", data={"token": token}, headers=headers)


async def test_opening_the_link_does_not_use_it_up(console: ControlPlane, pool: Pool) -> None:
    token = await create_welcome(pool, "ann@example.com", now=console.clock.now())
    async with Visitor(console) as scanner, Visitor(console) as person:
        opened = [await scanner.get(f"/console/welcome?token={token}") for _ in range(3)]
        assert [one.status_code for one in opened] == [200, 200, 200]
        assert scanner.token is None
        assert token in opened[0].text

        elsewhere = await use_link(person, token, Origin="https://evil.example")
        assert elsewhere.status_code == 403
        assert redirect_of(await use_link(person, token)) == (303, "/console")


async def test_the_link_ends_with_the_password_and_with_the_account(
    console: ControlPlane, pool: Pool
) -> None:
    bob = await make_person(console, "bob@example.com", Role.ADMIN)
    path = f"/admin/accounts/{bob}"
    async with Visitor(console) as visitor, console.acting_as(Role.ADMIN) as admin:
        token = await create_welcome(pool, "bob@example.com", now=console.clock.now())
        assert (await admin.put(f"{path}/password", json={"password": "another password"})).status_code == 204
        assert (await use_link(visitor, token)).status_code == 401

        token = await create_welcome(pool, "bob@example.com", now=console.clock.now())
        await admin.patch(f"{path}/disable")
        await admin.patch(f"{path}/enable")
        assert (await use_link(visitor, token)).status_code == 401


async def test_expired_links_are_deleted(console: ControlPlane, pool: Pool) -> None:
    await create_welcome(pool, "ann@example.com", now=console.clock.now())
    console.clock.advance(WELCOME_LIFETIME)

    async with Visitor(console) as ann:
        await ann.log_in("ann@example.com")

    assert await pool.fetchval("SELECT count(*) FROM console_welcomes") == 0


async def test_a_first_password_is_replaced_at_the_first_log_in(console: ControlPlane, pool: Pool) -> None:
    await pool.execute("UPDATE users SET must_change_password = true WHERE email = 'ann@example.com'")
    own = "a password of her own"
    new = {"email": "ann@example.com", "password": PASSWORD, "newPassword": own, "again": own}
    async with Visitor(console) as ann:
        asked = await ann.log_in("ann@example.com")
        assert asked.status_code == 403
        assert 'name="newPassword"' in asked.text
        assert PASSWORD not in asked.text
        assert ann.token is None
        for refused in ("short", PASSWORD):
            answer = await ann.post("/console/login", data={**new, "newPassword": refused, "again": refused})
            assert answer.status_code == 403
        mistyped = await ann.post("/console/login", data={**new, "again": "a pasword of her own"})
        assert mistyped.status_code == 403
        assert "The two passwords are not the same. Enter all three once more" in mistyped.text
        assert ["al-notice info" in said.text for said in (asked, mistyped)] == [True, False]
        assert redirect_of(await ann.post("/console/login", data=new)) == (303, "/console")
        assert (await ann.get("/console")).status_code == 200
    async with Visitor(console) as again:
        assert (await again.log_in("ann@example.com")).status_code == 401
        assert (await again.log_in("ann@example.com", "a password of her own")).status_code == 303


async def test_a_first_password_gives_a_program_no_tokens(console: ControlPlane, pool: Pool) -> None:
    await pool.execute("UPDATE users SET must_change_password = true WHERE email = 'ann@example.com'")
    body = {"email": "ann@example.com", "password": PASSWORD}
    async with console.client() as program:
        problem(await program.post("/auth/login", json=body), 403, "PASSWORD_CHANGE_REQUIRED")
        short = await program.post("/auth/login", json={**body, "newPassword": "short"})
        assert error_fields(problem(short, 400, "VALIDATION_FAILED")) == {"newPassword"}
        answer = await program.post("/auth/login", json={**body, "newPassword": "a password of her own"})
        assert answer.status_code == 200
        headers = {"Authorization": f"Bearer {answer.json()['accessToken']}"}
        assert (await program.get("/admin/banners", headers=headers)).status_code == 200


async def test_over_https_the_cookie_belongs_to_this_host_alone(database_url: str, redis_url: str) -> None:
    settings = control_settings(database_url, redis_url, public_url="https://console.example.com")
    async with running_control(settings, has_console=True) as plane:
        await make_person(plane, "ann@example.com", Role.ADMIN)
        async with plane.client() as ann:
            form = {"email": "ann@example.com", "password": PASSWORD}
            answer = await ann.post("/console/login", data=form)
            cookie = answer.headers["set-cookie"]
            name, _, value = cookie.partition(";")[0].partition("=")
            page = await ann.get("/console", headers={"Cookie": f"{name}={value}"})

    assert cookie.startswith("__Host-adloom_console=")
    assert "; Secure" in cookie
    assert "; Path=/;" in cookie
    assert "domain" not in cookie.lower()
    assert page.status_code == 200


async def test_the_link_of_the_first_start_works_once(console: ControlPlane, pool: Pool) -> None:
    token = await create_welcome(pool, "ann@example.com", now=console.clock.now())
    async with Visitor(console) as first, Visitor(console) as second:
        assert redirect_of(await use_link(first, token)) == (303, "/console")
        assert (await first.get("/console")).status_code == 200

        again = await use_link(second, token)

    assert again.status_code == 401
    assert "was used before, or is too old" in again.text


async def test_the_link_expires_after_a_day(console: ControlPlane, pool: Pool) -> None:
    token = await create_welcome(pool, "ann@example.com", now=console.clock.now())
    console.clock.advance(WELCOME_LIFETIME)

    async with Visitor(console) as visitor:
        assert (await use_link(visitor, token)).status_code == 401


@for_each("token", ["", "made-up", "\0", '"><script>'])
async def test_an_invented_link_does_not_log_in(token: str, console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        assert "<script>" not in (await visitor.get("/console/welcome", params={"token": token})).text
        assert (await use_link(visitor, token)).status_code == 401
        assert visitor.token is None


async def test_malformed_forms_get_an_answer(console: ControlPlane) -> None:
    bodies = [b"", b"\xff\xfe", b"email=%00&password=%00", b"&" * 100, b"email=a" * 3]
    async with Visitor(console) as visitor:
        answers = [
            await visitor.post(
                LOGIN, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"}
            )
            for body in bodies
        ]

    assert {answer.status_code for answer in answers} <= {400, 401}
