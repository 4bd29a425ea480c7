"""Security events are on the audit record, with subject and network; guessing passwords is slowed down."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from structlog.testing import capture_logs

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.support.control import Client, ControlPlane, control_settings, problem, running_control

PASSWORD = "a password of hers"
ANN = {"email": "ann@example.com", "password": PASSWORD, "role": "admin"}
LOG_IN = {"email": ANN["email"], "password": PASSWORD}
WRONG = {"email": ANN["email"], "password": "a wrong password"}


@pytest.fixture
async def plane(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    settings = control_settings(database_url, redis_url, trusted_proxies=(ip_network("127.0.0.1/32"),))
    async with running_control(settings) as running:
        yield running


async def ann_of(admin: Client) -> dict[str, Any]:
    return await admin.made("/admin/accounts", ANN)


async def entries(admin: Client, **query: str) -> list[dict[str, Any]]:
    items = (await admin.get("/admin/audit", params={"pageSize": "100", **query})).json()["items"]
    return items[::-1]


def from_address(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


async def test_log_ins_and_failures_are_recorded_with_subject_and_network(
    plane: ControlPlane, pool: Pool
) -> None:
    async with plane.acting_as(Role.ADMIN) as admin, plane.client() as visitor:
        ann = await ann_of(admin)
        far = from_address("203.0.113.77")
        assert (await visitor.post("/auth/login", json=WRONG, headers=far)).status_code == 401
        tokens = (await visitor.post("/auth/login", json=LOG_IN, headers=far)).json()
        unknown = {"email": "nobody@example.com", "password": "x"}
        assert (await visitor.post("/auth/login", json=unknown, headers=far)).status_code == 401
        await visitor.post("/auth/logout", json={"refreshToken": tokens["refreshToken"]})

        of_ann = await entries(admin, noun="user", nounId=ann["id"])
        assert [one["action"] for one in of_ann] == ["create", "log_in_failed", "log_in", "log_out"]
        assert {one["network"] for one in of_ann[1:3]} == {"203.0.113.0/24"}
        assert of_ann[2]["subject"] == ann["id"]
        assert of_ann[0]["subject"] == "test"
        [stranger] = await entries(admin, noun="user", nounId="unknown")
        assert (stranger["action"], stranger["network"]) == ("log_in_failed", "203.0.113.0/24")
    # Whatever was typed may be a password in the wrong field.
    record = str(await pool.fetch("SELECT * FROM audit_entries"))
    assert "nobody@example.com" not in record
    assert PASSWORD not in record


async def test_changes_of_accounts_and_keys_are_recorded(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    ann = await ann_of(admin)
    path = f"/admin/accounts/{ann['id']}"
    await admin.made("/admin/accounts", {**ANN, "email": "bob@example.com"})
    await admin.put(f"{path}/role", json={"role": "viewer"})
    await admin.put(f"{path}/password", json={"password": "another one of hers"})
    await admin.patch(f"{path}/disable")
    await admin.patch(f"{path}/enable")
    key = await admin.made("/admin/api-keys", {"name": "shop", "role": "viewer"})
    await admin.delete(f"/admin/api-keys/{key['id']}")
    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        for _ in range(5):
            assert (await machine.get("/admin/banners")).status_code == 401

    of_ann = await entries(admin, noun="user", nounId=ann["id"])
    assert [one["action"] for one in of_ann] == [
        "create",
        "role_changed",
        "password_set",
        "disable",
        "enable",
    ]
    assert of_ann[1]["changes"]["role"] == {"from": "admin", "to": "viewer"}
    of_key = await entries(admin, noun="api_key", nounId=key["id"])
    # Uses after the revocation are recorded once a minute: nobody can fill the record with them.
    assert [one["action"] for one in of_key] == ["create", "revoke", "used_after_revocation"]
    assert key["key"] not in str(await pool.fetch("SELECT * FROM audit_entries"))


async def test_accounts_do_not_read_the_security_record(admin: Client, control: ControlPlane) -> None:
    await ann_of(admin)

    async with control.acting_as(Role.ADVERTISER) as advertiser:
        assert await entries(advertiser, noun="user") == []


async def test_failed_log_ins_of_an_account_are_slowed_down_from_any_address(plane: ControlPlane) -> None:
    async with plane.acting_as(Role.ADMIN) as admin, plane.client() as visitor:
        await ann_of(admin)
        answers = [
            (await visitor.post("/auth/login", json=WRONG, headers=from_address(f"198.51.{n}.7"))).status_code
            for n in range(20)
        ]
        assert answers == [401] * 10 + [429] * 10

        # An address that nobody has logged in from waits too, but not for long.
        late = await visitor.post("/auth/login", json=LOG_IN, headers=from_address("192.0.2.1"))
        problem(late, 429, "RATE_LIMITED")
        assert int(late.headers["retry-after"]) <= 60
        plane.clock.advance(timedelta(seconds=int(late.headers["retry-after"])))
        answer = await visitor.post("/auth/login", json=LOG_IN, headers=from_address("192.0.2.1"))
        assert answer.status_code == 200


async def test_the_limit_of_attempts_does_not_lock_a_person_out_of_a_known_network(
    plane: ControlPlane,
) -> None:
    async with plane.acting_as(Role.ADMIN) as admin, plane.client() as visitor:
        await ann_of(admin)
        home = from_address("203.0.113.5")
        assert (await visitor.post("/auth/login", json=LOG_IN, headers=home)).status_code == 200

        for _ in range(3):
            for n in range(30):
                await visitor.post("/auth/login", json=WRONG, headers=from_address(f"198.51.{n}.7"))
            assert (await visitor.post("/auth/login", json=LOG_IN, headers=home)).status_code == 200
            plane.clock.advance(timedelta(seconds=30))


async def test_right_passwords_are_not_slowed_down(admin: Client, control: ControlPlane) -> None:
    await ann_of(admin)
    async with control.client() as visitor:
        answers = {(await visitor.post("/auth/login", json=LOG_IN)).status_code for _ in range(30)}

    assert answers == {200}


async def test_an_unknown_address_is_slowed_down_like_a_known_one(
    admin: Client, control: ControlPlane
) -> None:
    await ann_of(admin)
    async with control.client() as visitor:
        for email in (ANN["email"], "nobody@example.com"):
            body = {"email": email, "password": "a wrong password"}
            answers = [(await visitor.post("/auth/login", json=body)).status_code for _ in range(12)]
            assert answers == [401] * 10 + [429] * 2


async def test_guessing_the_own_password_is_slowed_down(admin: Client, control: ControlPlane) -> None:
    await ann_of(admin)
    async with control.client() as visitor:
        tokens = (await visitor.post("/auth/login", json=LOG_IN)).json()
        body = {"currentPassword": "a wrong one", "newPassword": "another one of hers"}
        headers = {"Authorization": f"Bearer {tokens['accessToken']}"}
        answers = [
            (await visitor.put("/admin/accounts/me/password", json=body, headers=headers)).status_code
            for _ in range(12)
        ]
        # Who guesses there does not lock the log-in.
        assert (await visitor.post("/auth/login", json=LOG_IN)).status_code == 200

    assert answers == [400] * 10 + [429] * 2


async def test_the_request_log_names_the_subject(admin: Client) -> None:
    with capture_logs() as logs:
        await admin.get("/admin/banners")

    assert [one["subject"] for one in logs if one["event"] == "request_answered"] == ["test"]
