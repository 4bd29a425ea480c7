"""Single sign-on, through a real provider: there, back, and the account that follows."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from adloom.core.caller import Role
from adloom.core.setting import Secret
from adloom.identity.pending import LIFETIME
from adloom.runtime.log_in_settings import LogInSettings, OidcSettings, parse_grants
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.console.visitor import PASSWORD, Visitor, make_person, redirect_of
from tests.support.builders import NOON, Json
from tests.support.control import ControlPlane, control_settings, problem, running_control
from tests.support.oidc_provider import RunningProvider, an_oidc_provider

CALLBACK = "/console/sso/callback"
ROLES: dict[str, Any] = {"role_claim": "groups", "role_map": parse_grants("ad-admins=admin, readers=viewer")}


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with an_oidc_provider() as running:
        yield running


class Site:
    """A control plane that trusts a provider."""

    def __init__(self, plane: ControlPlane, provider: RunningProvider) -> None:
        self.plane = plane
        self.provider = provider

    async def log_in(self, subject: str, visitor: Visitor, *, goal: str = "/console") -> httpx.Response:
        begun = await visitor.get(f"/console/sso?next={goal}")
        assert begun.status_code == 303, begun.text
        back = self.provider.approve(begun.headers["location"], subject)
        return await visitor.get(back)

    async def people(self) -> list[Json]:
        async with self.plane.acting_as(Role.ADMIN) as admin:
            return (await admin.get("/admin/accounts", params={"sort": "email"})).json()["items"]


@asynccontextmanager
async def a_site(
    database_url: str,
    redis_url: str,
    provider: RunningProvider,
    *,
    takes_passwords: bool = True,
    second_factor_roles: tuple[Role, ...] = (),
    **oidc: Any,
) -> AsyncGenerator[Site]:
    settings = control_settings(
        database_url,
        redis_url,
        public_url="http://control.test",
        log_in=LogInSettings(
            takes_passwords=takes_passwords,
            second_factor_roles=second_factor_roles,
            oidc=OidcSettings(
                issuer=provider.url,
                client_id="adloom",
                client_secret=Secret("a secret of the client"),
                name="Our Company",
                **oidc,
            ),
        ),
    )
    async with running_control(settings, has_console=True) as plane:
        # The provider has the clock of the machine.
        plane.clock.advance(datetime.now(UTC) - NOON)
        yield Site(plane, provider)


@pytest.fixture
async def site(database_url: str, redis_url: str, provider: RunningProvider) -> AsyncGenerator[Site]:
    async with a_site(database_url, redis_url, provider, **ROLES) as site:
        yield site


async def test_a_new_person_gets_an_account_with_the_role_of_the_group(site: Site, pool: Pool) -> None:
    site.provider.knows("s-1", email="ann@example.com", email_verified=True, groups=["staff", "ad-admins"])

    async with Visitor(site.plane) as ann:
        form = await ann.get("/console/login?next=/console/jobs")
        answer = await site.log_in("s-1", ann, goal="/console/jobs")
        page = await ann.get("/console/jobs")

    assert "Log in with Our Company" in form.text
    assert redirect_of(answer) == (303, "/console/jobs")
    assert page.status_code == 200
    [person] = await site.people()
    assert (person["email"], person["role"]) == ("ann@example.com", "admin")
    assert (person["hasPassword"], person["hasSingleSignOn"]) == (False, True)
    actions = await pool.fetch("SELECT action FROM audit_entries WHERE noun = 'user' ORDER BY id")
    assert [row["action"] for row in actions] == ["create", "single_sign_on_linked", "log_in"]


async def test_an_account_is_linked_by_verified_mail_and_then_known_by_its_subject(site: Site) -> None:
    person_id = await make_person(site.plane, "Bob@example.com", Role.VIEWER)
    site.provider.knows("s-2", email="bob@example.com", email_verified=True, groups="readers")

    async with Visitor(site.plane) as bob:
        await site.log_in("s-2", bob)
        site.provider.knows("s-2", email="robert@example.com", email_verified=True, groups=["readers"])
        again = await site.log_in("s-2", bob)

    assert redirect_of(again) == (303, "/console")
    [person] = await site.people()
    assert (person["id"], person["email"], person["hasSingleSignOn"]) == (person_id, "Bob@example.com", True)


async def test_the_role_follows_the_provider_but_for_the_last_admin(site: Site) -> None:
    site.provider.knows("s-3", email="cleo@example.com", email_verified=True, groups=["ad-admins"])
    async with Visitor(site.plane) as cleo:
        await site.log_in("s-3", cleo)
        site.provider.knows("s-3", email="cleo@example.com", email_verified=True, groups=["readers"])
        last = await site.log_in("s-3", cleo)
        await make_person(site.plane, "dora@example.com", Role.ADMIN)
        followed = await site.log_in("s-3", cleo)

    assert last.status_code == 409
    assert "the last admin" in last.text
    assert redirect_of(followed) == (303, "/console")
    assert [person["role"] for person in await site.people()] == ["viewer", "admin"]


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"email": "ann@example.com", "email_verified": False, "groups": ["readers"]}, "has not verified"),
        ({"groups": ["readers"]}, "has not verified"),
        ({"email": "ann@example.com", "email_verified": True, "groups": ["staff"]}, "none of your groups"),
        ({"email": "ann@example.com", "email_verified": True}, "none of your groups"),
    ],
    ids=["unverified", "no-mail", "no-role", "no-claim"],
)
async def test_who_has_no_role_or_no_verified_mail_is_refused_with_a_sentence(
    claims: Json, sentence: str, site: Site, pool: Pool
) -> None:
    site.provider.knows("s-4", **claims)

    async with Visitor(site.plane) as visitor:
        answer = await site.log_in("s-4", visitor)

        assert visitor.token is None
    assert answer.status_code == 403
    assert sentence in answer.text
    assert await site.people() == []
    assert await pool.fetchval("SELECT array_agg(action) FROM audit_entries") == ["log_in_failed"]


async def test_an_account_of_somebody_else_is_not_given_away(site: Site) -> None:
    claims: Json = {"email": "eve@example.com", "email_verified": True, "groups": ["readers"]}
    site.provider.knows("s-5", **claims)
    site.provider.knows("s-6", **claims)
    async with Visitor(site.plane) as first, Visitor(site.plane) as second:
        await site.log_in("s-5", first)
        answer = await site.log_in("s-6", second)

    assert answer.status_code == 403
    assert "belongs to somebody else" in answer.text


async def test_a_disabled_account_stays_out(site: Site) -> None:
    person_id = await make_person(site.plane, "fay@example.com", Role.VIEWER)
    site.provider.knows("s-7", email="fay@example.com", email_verified=True, groups=["readers"])
    async with site.plane.acting_as(Role.ADMIN) as admin, Visitor(site.plane) as fay:
        await admin.patch(f"/admin/accounts/{person_id}/disable")
        answer = await site.log_in("s-7", fay)

    assert answer.status_code == 403
    assert "is disabled" in answer.text


async def test_a_group_acts_for_an_advertiser(
    database_url: str, redis_url: str, provider: RunningProvider
) -> None:
    settings = control_settings(database_url, redis_url)
    async with running_control(settings) as plane, plane.acting_as(Role.ADMIN) as admin:
        shop = await admin.make_advertiser(name="Birch & Co")
    provider.knows("s-8", email="gil@example.com", email_verified=True, realm={"roles": ["shop"]})
    grants = parse_grants(f"shop=advertiser:{shop['id']}")

    async with (
        a_site(database_url, redis_url, provider, role_claim="realm.roles", role_map=grants) as site,
        Visitor(site.plane) as gil,
    ):
        await site.log_in("s-8", gil)
        [person] = await site.people()

    assert (person["role"], person["accountName"]) == ("advertiser", "Birch & Co")


async def test_without_roles_only_accounts_that_are_here_log_in(
    database_url: str, redis_url: str, provider: RunningProvider
) -> None:
    provider.knows("s-9", email="hal@example.com", email_verified=True)
    async with a_site(database_url, redis_url, provider) as site, Visitor(site.plane) as hal:
        stranger = await site.log_in("s-9", hal)
        await make_person(site.plane, "hal@example.com", Role.PUBLISHER)
        known = await site.log_in("s-9", hal)

    assert stranger.status_code == 403
    assert "There is no account for hal@example.com here" in stranger.text
    assert redirect_of(known) == (303, "/console")


async def test_what_was_begun_elsewhere_or_long_ago_is_refused(site: Site) -> None:
    site.provider.knows("s-10", email="ida@example.com", email_verified=True, groups=["readers"])
    async with Visitor(site.plane) as ida, Visitor(site.plane) as other:
        begun = await ida.get("/console/sso")
        back = site.provider.approve(begun.headers["location"], "s-10")
        without_cookie = await other.get(back)
        await other.get("/console/sso")
        of_another = await other.get(back)
        site.plane.clock.advance(LIFETIME)
        late = await ida.get(back)

        assert ida.token is other.token is None
    assert [answer.status_code for answer in (without_cookie, of_another, late)] == [401, 401, 401]


async def test_a_code_works_only_with_its_verifier_and_once(site: Site) -> None:
    site.provider.knows("s-11", email="jo@example.com", email_verified=True, groups=["readers"])
    async with Visitor(site.plane) as jo, Visitor(site.plane) as thief:
        begun = await jo.get("/console/sso")
        back = site.provider.approve(begun.headers["location"], "s-11")
        code = parse_qs(urlsplit(back).query)["code"][0]
        own = await thief.get("/console/sso")
        state = parse_qs(urlsplit(own.headers["location"]).query)["state"][0]
        stolen = await thief.get(f"{CALLBACK}?code={code}&state={state}")
        right = await jo.get(back)
        again = await jo.get(back)

        assert thief.token is None
    assert stolen.status_code == 401
    assert "refused the log-in" in stolen.text
    assert right.status_code == 303
    assert again.status_code == 401


async def test_who_says_no_at_the_provider_is_told_so(site: Site) -> None:
    async with Visitor(site.plane) as visitor:
        begun = await visitor.get("/console/sso")
        state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
        answer = await visitor.get(f"{CALLBACK}?error=access_denied%3Cb%3E&state={state}")

    assert answer.status_code == 401
    assert "did not log you in (access_denied&lt;b&gt;)" in answer.text


async def test_a_provider_that_is_away_is_a_sentence(database_url: str, redis_url: str) -> None:
    gone = RunningProvider(f"http://127.0.0.1:{find_port()}")
    async with a_site(database_url, redis_url, gone) as site, Visitor(site.plane) as visitor:
        form = await visitor.get("/console/login")
        answer = await visitor.get("/console/sso")

    assert form.status_code == 200
    assert answer.status_code == 503
    assert "does not answer as it should" in answer.text


async def test_the_description_is_read_once_an_hour(site: Site) -> None:
    async with Visitor(site.plane) as visitor:
        first = await visitor.get("/console/sso")
        site.plane.app.state.single_sign_on._provider._client = None  # noqa: SLF001 - asking again would fail
        second = await visitor.get("/console/sso")

    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] != second.headers["location"]


async def test_passwords_can_be_turned_off(
    database_url: str, redis_url: str, provider: RunningProvider
) -> None:
    async with (
        a_site(database_url, redis_url, provider, takes_passwords=False) as site,
        Visitor(site.plane) as visitor,
    ):
        await make_person(site.plane, "kay@example.com", Role.VIEWER)
        form = await visitor.get("/console/login")
        by_form = await visitor.log_in("kay@example.com")
        body = {"email": "kay@example.com", "password": PASSWORD}
        problem(await visitor.post("/auth/login", json=body), 403, "PASSWORD_LOG_IN_OFF")

        assert visitor.token is None
    assert "Log in with Our Company" in form.text
    assert "password" not in form.text
    assert by_form.status_code == 403


async def test_the_second_factor_is_the_providers(
    database_url: str, redis_url: str, provider: RunningProvider
) -> None:
    provider.knows("s-12", email="lee@example.com", email_verified=True, groups=["readers"])
    settings: dict[str, Any] = {**ROLES, "second_factor_roles": (Role.VIEWER,)}
    async with a_site(database_url, redis_url, provider, **settings) as site, Visitor(site.plane) as lee:
        answer = await site.log_in("s-12", lee)
        assert lee.token is not None
        token = lee.token
    # A restart ends the log-ins of people without a second factor, but not of those whom a provider vouches for.
    async with a_site(database_url, redis_url, provider, **settings) as again:
        found = await again.plane.app.state.console_sessions.find(token, now=again.plane.clock.now())

    assert redirect_of(answer) == (303, "/console")
    assert found is not None


async def test_without_a_provider_there_is_no_button(console: ControlPlane) -> None:
    async with Visitor(console) as visitor:
        form = await visitor.get("/console/login")
        answer = await visitor.get("/console/sso")

    assert "Log in with" not in form.text
    assert answer.status_code == 404
