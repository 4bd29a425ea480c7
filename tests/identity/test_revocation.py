"""Tokens and keys end with the account, the password, the role and the log-in that they came from."""

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.identity.store import USER_BY_TOKEN
from adloom.runtime.postgres import Pool
from adloom.runtime.settings import TokenSettings
from tests.support.builders import UNKNOWN_ID
from tests.support.control import Client, ControlPlane, control_settings, problem, running_control

PASSWORD = "a password of hers"
ANN = {"email": "ann@example.com", "password": PASSWORD, "role": "admin"}


@pytest.fixture
async def ann(admin: Client) -> dict[str, Any]:
    """An admin who is not the last one."""
    await admin.made("/admin/accounts", {**ANN, "email": "bob@example.com"})
    return await admin.made("/admin/accounts", ANN)


@pytest.fixture
async def visitor(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.client() as client:
        yield client


async def logged_in(visitor: Client, password: str = PASSWORD) -> dict[str, Any]:
    answer = await visitor.post("/auth/login", json={"email": ANN["email"], "password": password})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read_with(visitor: Client, tokens: dict[str, Any]) -> int:
    headers = {"Authorization": f"Bearer {tokens['accessToken']}"}
    return (await visitor.get("/admin/banners", headers=headers)).status_code


async def test_an_access_token_ends_with_its_account(
    admin: Client, visitor: Client, ann: dict[str, Any]
) -> None:
    tokens = await logged_in(visitor)
    assert await read_with(visitor, tokens) == 200

    assert (await admin.patch(f"/admin/accounts/{ann['id']}/disable")).status_code == 200
    assert await read_with(visitor, tokens) == 401
    # Enabling the account does not bring its old tokens back.
    assert (await admin.patch(f"/admin/accounts/{ann['id']}/enable")).status_code == 200
    assert await read_with(visitor, tokens) == 401
    assert await read_with(visitor, await logged_in(visitor)) == 200


async def test_an_access_token_ends_with_the_password(
    admin: Client, visitor: Client, ann: dict[str, Any]
) -> None:
    tokens = await logged_in(visitor)

    new = "another one of hers"
    answer = await admin.put(f"/admin/accounts/{ann['id']}/password", json={"password": new})

    assert answer.status_code == 204
    assert await read_with(visitor, tokens) == 401
    assert await read_with(visitor, await logged_in(visitor, new)) == 200


@pytest.mark.usefixtures("ann")
async def test_an_access_token_ends_when_its_owner_changes_the_password(visitor: Client) -> None:
    tokens = await logged_in(visitor)

    answer = await visitor.put(
        "/admin/accounts/me/password",
        json={"currentPassword": PASSWORD, "newPassword": "another one of hers"},
        headers={"Authorization": f"Bearer {tokens['accessToken']}"},
    )

    assert answer.status_code == 204
    assert await read_with(visitor, tokens) == 401


@pytest.mark.usefixtures("ann")
async def test_an_access_token_ends_with_its_log_in_and_others_go_on(visitor: Client) -> None:
    first, second = await logged_in(visitor), await logged_in(visitor)

    out = await visitor.post("/auth/logout", json={"refreshToken": first["refreshToken"]})

    assert out.status_code == 204
    assert await read_with(visitor, first) == 401
    assert await read_with(visitor, second) == 200


@pytest.mark.usefixtures("ann")
async def test_a_reused_refresh_token_ends_the_access_tokens_of_its_log_in(visitor: Client) -> None:
    first = await logged_in(visitor)
    second = (await visitor.post("/auth/refresh", json={"refreshToken": first["refreshToken"]})).json()
    assert await read_with(visitor, second) == 200

    reused = await visitor.post("/auth/refresh", json={"refreshToken": first["refreshToken"]})

    assert reused.status_code == 401
    assert await read_with(visitor, second) == 401


async def test_an_access_token_ends_with_the_role(
    admin: Client, visitor: Client, ann: dict[str, Any]
) -> None:
    tokens = await logged_in(visitor)

    changed = await admin.put(f"/admin/accounts/{ann['id']}/role", json={"role": "viewer"})

    assert changed.status_code == 200, changed.text
    assert changed.json()["role"] == "viewer"
    assert await read_with(visitor, tokens) == 401
    headers = {"Authorization": f"Bearer {(await logged_in(visitor))['accessToken']}"}
    problem(await visitor.post("/admin/banners", json={}, headers=headers), 403, "FORBIDDEN")


async def test_the_last_admin_keeps_the_role(admin: Client) -> None:
    ann = await admin.made("/admin/accounts", ANN)
    answer = await admin.put(f"/admin/accounts/{ann['id']}/role", json={"role": "viewer"})
    problem(answer, 409, "ACCOUNT_LAST_ADMIN")
    answer = await admin.put(f"/admin/accounts/{ann['id']}/role", json={"role": "advertiser"})
    problem(answer, 400, "VALIDATION_FAILED")


async def test_a_token_of_a_person_who_does_not_exist_is_refused(control: ControlPlane) -> None:
    token = control.token(Role.ADMIN, subject="01890000-0000-7000-8000-0000000000ff")

    async with control.client(Authorization=f"Bearer {token}") as client:
        problem(await client.get("/admin/banners"), 401, "UNAUTHENTICATED")


@pytest.mark.usefixtures("ann")
async def test_a_log_in_ends_at_last_however_often_it_is_refreshed(
    control: ControlPlane, visitor: Client
) -> None:
    tokens = await logged_in(visitor)

    refreshes = 0
    for _ in range(10):
        control.clock.advance(timedelta(days=6))
        answer = await visitor.post("/auth/refresh", json={"refreshToken": tokens["refreshToken"]})
        if answer.status_code != 200:
            break
        tokens, refreshes = answer.json(), refreshes + 1

    assert refreshes == 4  # 30 days.


async def test_keys_end_with_the_person_who_made_them(
    admin: Client, control: ControlPlane, visitor: Client, ann: dict[str, Any]
) -> None:
    headers = {"Authorization": f"Bearer {(await logged_in(visitor))['accessToken']}"}
    body = {"name": "shop", "role": "admin"}
    made = (await visitor.post("/admin/api-keys", json=body, headers=headers)).json()
    async with control.client(**{"X-API-Key": made["key"]}) as machine:
        child = await machine.made("/admin/api-keys", body)
        assert (await machine.get("/admin/banners")).status_code == 200
    assert made["ownerId"] == child["ownerId"] == ann["id"]
    of_another = await admin.made("/admin/api-keys", body)

    await admin.patch(f"/admin/accounts/{ann['id']}/disable")

    for key, status in ((made, 401), (child, 401), (of_another, 200)):
        async with control.client(**{"X-API-Key": key["key"]}) as machine:
            assert (await machine.get("/admin/banners")).status_code == status
    listed = {one["id"]: one for one in (await admin.get("/admin/api-keys")).json()["items"]}
    assert listed[made["id"]]["revokedAt"] is not None
    assert listed[of_another["id"]]["revokedAt"] is None


async def test_a_key_ends_at_its_time_and_shows_its_last_use(control: ControlPlane, admin: Client) -> None:
    now = control.clock.now()
    by_default = await admin.made("/admin/api-keys", {"name": "a", "role": "viewer"})
    short = await admin.made(
        "/admin/api-keys",
        {"name": "b", "role": "viewer", "expiresAt": (now + timedelta(hours=1)).isoformat()},
    )
    endless = await admin.made("/admin/api-keys", {"name": "c", "role": "viewer", "expiresAt": None})
    assert datetime.fromisoformat(by_default["expiresAt"]) == now + timedelta(days=365)
    assert endless["expiresAt"] is None
    assert short["lastUsedAt"] is None

    past = {"name": "d", "role": "viewer", "expiresAt": now.isoformat()}
    problem(await admin.post("/admin/api-keys", json=past), 400, "VALIDATION_FAILED")

    async with control.client(**{"X-API-Key": short["key"]}) as machine:
        assert (await machine.get("/admin/banners")).status_code == 200
        used = {one["id"]: one for one in (await admin.get("/admin/api-keys")).json()["items"]}
        assert used[short["id"]]["lastUsedAt"] is not None
        control.clock.advance(timedelta(hours=1))
        problem(await machine.get("/admin/banners"), 401, "UNAUTHENTICATED")


async def test_tokens_of_the_command_line_are_listed_and_can_be_revoked(
    control: ControlPlane, admin: Client
) -> None:
    async with control.acting_as(Role.VIEWER) as cli:
        assert (await cli.get("/admin/banners")).status_code == 200
        [mine] = [
            one
            for one in (await admin.get("/admin/access-tokens")).json()["items"]
            if one["role"] == "viewer"
        ]
        assert mine["subject"] == "test"
        assert mine["lastUsedAt"] is not None
        assert mine["expiresAt"] is not None

        assert (await admin.delete(f"/admin/access-tokens/{mine['id']}")).status_code == 204

        problem(await cli.get("/admin/banners"), 401, "UNAUTHENTICATED")
    again = await admin.delete(f"/admin/access-tokens/{mine['id']}")
    problem(again, 409, "ACCESS_TOKEN_ALREADY_ENDED")
    problem(await admin.delete(f"/admin/access-tokens/{UNKNOWN_ID}"), 404, "ACCESS_TOKEN_NOT_FOUND")
    async with control.acting_as(Role.VIEWER) as cli:
        problem(await cli.get("/admin/access-tokens"), 403, "FORBIDDEN")


async def test_issuer_audience_and_lifetime_of_tokens_are_settings(database_url: str, redis_url: str) -> None:
    tokens = TokenSettings(issuer="us", audience="ours", access_minutes=5)
    async with (
        running_control(control_settings(database_url, redis_url, tokens=tokens)) as plane,
        running_control(control_settings(database_url, redis_url)) as other,
    ):
        async with other.acting_as(Role.ADMIN) as admin:
            await admin.made("/admin/accounts", ANN)
        async with plane.client() as visitor:
            pair = await logged_in(visitor)
            assert pair["expiresIn"] == 300
            assert await read_with(visitor, pair) == 200
        async with other.client() as stranger:
            assert await read_with(stranger, pair) == 401
        async with plane.client() as stranger:
            theirs = {"accessToken": other.token(Role.ADMIN)}
            assert await read_with(stranger, theirs) == 401


async def test_a_user_is_read_by_one_indexed_query(pool: Pool) -> None:
    """The price of revocation: a plan without a scan of all users."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        rows = await connection.fetch(f"EXPLAIN {USER_BY_TOKEN}", UUID(int=1), UUID(int=2))
    plan = "\n".join(row[0] for row in rows)

    assert "Seq Scan" not in plan
