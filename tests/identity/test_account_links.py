"""Links of accounts: they work once, for a while, and end what was open before."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from adloom.identity.link.store import LIFETIMES, LinkPurpose
from adloom.runtime.postgres import Pool
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, error_fields, problem

PASSWORD = "a good password"
NEW = "another good password"


async def invite(admin: Client, **fields: object) -> Json:
    body = {"email": "ann@example.com", "role": "viewer", **fields}
    return await admin.made("/admin/accounts", body)


async def make_token(admin: Client, person: Json) -> str:
    made = await admin.made(f"/admin/accounts/{person['id']}/link", {})
    parts = urlsplit(str(made["url"]))
    assert parts.path == "/console/password"
    return parse_qs(parts.query)["token"][0]


async def choose(client: Client, token: str, password: str = NEW) -> httpx.Response:
    return await client.post("/auth/password", json={"token": token, "newPassword": password})


async def log_in(client: Client, password: str = NEW) -> httpx.Response:
    return await client.post("/auth/login", json={"email": "ann@example.com", "password": password})


async def test_an_invited_person_chooses_a_password_once(admin: Client, pool: Pool) -> None:
    person = await invite(admin)
    token = await make_token(admin, person)

    first, second = await choose(admin, token), await choose(admin, token, "a third password")

    assert first.status_code == 204
    problem(second, 401, "LINK_NOT_VALID")
    assert (await log_in(admin)).status_code == 200
    [listed] = (await admin.get("/admin/accounts")).json()["items"]
    assert listed["hasPassword"]
    actions = await pool.fetch(
        "SELECT action, subject FROM audit_entries WHERE noun_id = $1 ORDER BY id", person["id"]
    )
    assert [row["action"] for row in actions] == ["create", "link_made", "password_set_by_link", "log_in"]
    assert actions[2]["subject"] == person["id"]


async def test_only_the_hash_of_a_link_is_stored(admin: Client, pool: Pool) -> None:
    token = await make_token(admin, await invite(admin))

    [row] = await pool.fetch("SELECT * FROM account_links")

    assert len(row["token_hash"]) == 32
    assert token not in str(dict(row))


async def test_a_reset_ends_log_ins_and_other_links(admin: Client) -> None:
    person = await invite(admin, password=PASSWORD)
    pair = (await log_in(admin, PASSWORD)).json()
    token, other = await make_token(admin, person), await make_token(admin, person)

    assert (await log_in(admin, PASSWORD)).status_code == 200, "until it is used, nothing changes"
    await choose(admin, token)

    bearer = {"Authorization": f"Bearer {pair['accessToken']}"}
    problem(await admin.get("/admin/accounts/me", headers=bearer), 401, "UNAUTHENTICATED")
    refreshed = await admin.post("/auth/refresh", json={"refreshToken": pair["refreshToken"]})
    problem(refreshed, 401, "UNAUTHENTICATED")
    problem(await choose(admin, other), 401, "LINK_NOT_VALID")
    problem(await log_in(admin, PASSWORD), 401, "UNAUTHENTICATED")
    assert (await log_in(admin)).status_code == 200


@pytest.mark.parametrize("purpose", LinkPurpose)
async def test_a_link_ends_by_itself(purpose: LinkPurpose, control: ControlPlane, admin: Client) -> None:
    fields: Json = {} if purpose is LinkPurpose.INVITATION else {"password": PASSWORD}
    token = await make_token(admin, await invite(admin, **fields))

    control.clock.advance(LIFETIMES[purpose] - timedelta(seconds=1))
    short = await choose(admin, token, "short")
    control.clock.advance(timedelta(seconds=1))

    assert error_fields(problem(short, 400, "VALIDATION_FAILED")) == {"newPassword"}
    problem(await choose(admin, token), 401, "LINK_NOT_VALID")


@pytest.mark.parametrize("ending", ["disable", "password", "email", "remove"])
async def test_what_changes_an_account_ends_its_links(ending: str, admin: Client) -> None:
    person = await invite(admin)
    token, path = await make_token(admin, person), f"/admin/accounts/{person['id']}"

    match ending:
        case "disable":
            await admin.patch(f"{path}/disable")
            await admin.patch(f"{path}/enable")
        case "password":
            await admin.put(f"{path}/password", json={"password": PASSWORD})
        case "email":
            await admin.patch(path, json={"email": "anna@example.com"})
        case _:
            await admin.delete(path)

    problem(await choose(admin, token), 401, "LINK_NOT_VALID")
