"""User accounts over HTTP: log-in and passwords."""

from uuid import uuid4

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each

PASSWORD = "a good password"


def person_body(**fields: object) -> Json:
    return {"email": "ann@example.com", "password": PASSWORD, "role": "viewer", **fields}


async def token_of(client: Client, email: str = "ann@example.com", password: str = PASSWORD) -> str:
    answer = await client.post("/auth/login", json={"email": email, "password": password})
    assert answer.status_code == 200, answer.text
    return answer.json()["accessToken"]


async def test_a_new_account_can_log_in(control: ControlPlane, admin: Client) -> None:
    made = await admin.made("/admin/accounts", person_body())
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        me = (await ann.get("/admin/accounts/me")).json()

    assert me == {"id": made["id"], "role": "viewer", "accountId": None, "timeZone": None}
    assert made["disabledAt"] is None
    assert PASSWORD not in str(made)


async def test_a_time_zone_is_set_by_its_owner_and_by_admins(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    made = await admin.made("/admin/accounts", person_body(timeZone="Asia/Kolkata"))
    path = f"/admin/accounts/{made['id']}"
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        own = (await ann.patch("/admin/accounts/me", json={"timeZone": "Europe/Berlin"})).json()
        same = (await ann.patch("/admin/accounts/me", json={})).json()
        wrong = await ann.patch("/admin/accounts/me", json={"timeZone": "Mars/Olympus"})
        by_admin = (await admin.patch(path, json={"timeZone": None})).json()
        other = await admin.patch(path, json={"email": "bob@example.com"})
        me = (await ann.get("/admin/accounts/me")).json()
    machine = await admin.patch("/admin/accounts/me", json={"timeZone": "UTC"})

    assert made["timeZone"] == "Asia/Kolkata"
    assert own == same == {**me, "timeZone": "Europe/Berlin"}
    assert error_fields(problem(wrong, 400, "VALIDATION_FAILED")) == {"timeZone"}
    assert by_admin["timeZone"] is me["timeZone"] is other.json()["timeZone"] is None
    problem(machine, 403, "ACCOUNT_OF_MACHINE")
    changes = await pool.fetch("SELECT changes FROM audit_entries WHERE changes ? 'timeZone' ORDER BY id")
    assert len(changes) == 3, "made, by herself, by the admin"


async def test_accounts_are_searched_filtered_and_sorted(admin: Client) -> None:
    for number, role in enumerate(("viewer", "admin", "viewer")):
        await admin.made("/admin/accounts", person_body(email=f"p{number}@example.com", role=role))

    found = (await admin.get("/admin/accounts", params={"search": "P0@"})).json()
    viewers = (await admin.get("/admin/accounts", params={"role": "viewer", "sort": "-email"})).json()

    assert [item["email"] for item in found["items"]] == ["p0@example.com"]
    assert [item["email"] for item in viewers["items"]] == ["p2@example.com", "p0@example.com"]


async def test_an_email_address_is_unique_in_any_case(admin: Client) -> None:
    await admin.made("/admin/accounts", person_body())

    answer = await admin.post("/admin/accounts", json=person_body(email="ANN@example.com"))

    problem(answer, 409, "ACCOUNT_EMAIL_EXISTS")


@for_each(
    ("fields", "field"),
    [
        ({"email": "ann"}, "email"),
        ({"email": "ann @example.com"}, "email"),
        ({"password": "short"}, "password"),
        ({"password": "x" * 2_000}, "password"),
        ({"role": "owner"}, "role"),
        ({"role": "advertiser"}, "accountId"),
        ({"accountId": str(uuid4())}, "accountId"),
    ],
)
async def test_errors_of_a_new_account_are_reported_by_field(fields: Json, field: str, admin: Client) -> None:
    answer = await admin.post("/admin/accounts", json=person_body(**fields))

    assert field in error_fields(problem(answer, 400, "VALIDATION_FAILED"))


async def test_an_advertiser_logs_in_for_its_account(control: ControlPlane, admin: Client) -> None:
    shop = await admin.make_advertiser(name="Birch & Co")
    person = await admin.made("/admin/accounts", person_body(role="advertiser", accountId=shop["id"]))
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        made = await ann.make_campaign()

    assert made["advertiserId"] == shop["id"]
    assert person["accountName"] == "Birch & Co"
    listed = (await admin.get("/admin/accounts", params={"search": "birch"})).json()
    assert [one["accountName"] for one in listed["items"]] == ["Birch & Co"]


async def test_a_deleted_advertiser_has_no_new_accounts(admin: Client) -> None:
    shop = await admin.make_advertiser()
    await admin.delete(f"/admin/advertisers/{shop['id']}")

    answer = await admin.post("/admin/accounts", json=person_body(role="advertiser", accountId=shop["id"]))

    assert problem(answer, 400, "VALIDATION_FAILED")["errors"][0]["message"] == "names a deleted advertiser"


async def test_an_account_is_edited(admin: Client, pool: Pool) -> None:
    shop, other = await admin.make_advertiser(), await admin.make_advertiser(name="Oak")
    made = await admin.made("/admin/accounts", person_body())
    path = f"/admin/accounts/{made['id']}"

    renamed = (await admin.patch(path, json={"email": "anna@example.com"})).json()
    token = await token_of(admin, "anna@example.com")
    moved = (await admin.patch(path, json={"role": "advertiser", "accountId": shop["id"]})).json()
    again = (await admin.patch(path, json={"accountId": other["id"]})).json()
    refused = await admin.patch(path, json={"role": "publisher", "accountId": shop["id"]})
    back = (await admin.patch(path, json={"role": "viewer"})).json()

    assert (renamed["email"], renamed["role"]) == ("anna@example.com", "viewer")
    assert (moved["role"], moved["accountId"]) == ("advertiser", shop["id"])
    assert (again["role"], again["accountName"]) == ("advertiser", "Oak")
    assert error_fields(problem(refused, 400, "VALIDATION_FAILED")) == {"accountId"}
    assert (back["role"], back["accountId"], back["accountName"]) == ("viewer", None, None)
    assert (
        await admin.get("/admin/accounts/me", headers={"Authorization": f"Bearer {token}"})
    ).status_code == 401
    actions = await pool.fetch("SELECT action FROM audit_entries WHERE noun_id = $1 ORDER BY id", made["id"])
    assert [row["action"] for row in actions] == ["create", "update", "log_in", *["role_changed"] * 3]


async def test_an_address_that_another_has_is_refused(admin: Client) -> None:
    made = await admin.made("/admin/accounts", person_body())
    await admin.made("/admin/accounts", person_body(email="bob@example.com"))

    answer = await admin.patch(f"/admin/accounts/{made['id']}", json={"email": "BOB@example.com"})
    own = await admin.patch(f"/admin/accounts/{made['id']}", json={"email": "Ann@example.com"})

    problem(answer, 409, "ACCOUNT_EMAIL_EXISTS")
    assert own.json()["email"] == "Ann@example.com"


async def test_a_removed_account_ends_and_frees_its_address(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    made = await admin.made("/admin/accounts", person_body(role="admin"))
    await admin.made("/admin/accounts", person_body(role="admin", email="bob@example.com"))
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        key = await ann.made("/admin/api-keys", {"name": "hers", "role": "viewer"})
        banner = await ann.make_banner()

        removed = await admin.delete(f"/admin/accounts/{made['id']}")

        problem(await ann.get("/admin/accounts/me"), 401, "UNAUTHENTICATED")
    assert removed.status_code == 204
    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        problem(await machine.get("/admin/banners"), 401, "UNAUTHENTICATED")
    assert (await admin.get(f"/admin/banners/{banner['id']}")).status_code == 200
    again = await admin.made("/admin/accounts", person_body())
    assert again["id"] != made["id"]
    entry = await pool.fetchval(
        "SELECT changes FROM audit_entries WHERE noun_id = $1 AND action = 'delete'", made["id"]
    )
    assert "ann@example.com" in str(entry)


async def test_the_last_admin_is_neither_removed_nor_edited_away(admin: Client) -> None:
    made = await admin.made("/admin/accounts", person_body(role="admin"))
    path = f"/admin/accounts/{made['id']}"

    problem(await admin.delete(path), 409, "ACCOUNT_LAST_ADMIN")
    problem(await admin.patch(path, json={"role": "viewer"}), 409, "ACCOUNT_LAST_ADMIN")
    assert (await admin.patch(path, json={"email": "boss@example.com"})).status_code == 200


async def test_an_account_without_a_password_cannot_log_in(admin: Client) -> None:
    body = person_body()
    del body["password"]
    made = await admin.made("/admin/accounts", body)

    answer = await admin.post("/auth/login", json={"email": "ann@example.com", "password": PASSWORD})

    assert made["hasPassword"] is False
    problem(answer, 401, "UNAUTHENTICATED")


async def test_a_password_that_an_admin_sets_ends_every_log_in(admin: Client) -> None:
    made = await admin.made("/admin/accounts", person_body())
    pair = (await admin.post("/auth/login", json={"email": "ann@example.com", "password": PASSWORD})).json()

    answer = await admin.put(f"/admin/accounts/{made['id']}/password", json={"password": "another password"})

    assert answer.status_code == 204
    problem(
        await admin.post("/auth/refresh", json={"refreshToken": pair["refreshToken"]}), 401, "UNAUTHENTICATED"
    )
    assert await token_of(admin, password="another password")


async def test_changing_the_own_password_needs_the_old_one(control: ControlPlane, admin: Client) -> None:
    await admin.made("/admin/accounts", person_body())
    body = {"currentPassword": PASSWORD, "newPassword": "another password"}
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        wrong = await ann.put("/admin/accounts/me/password", json=body | {"currentPassword": "a guess"})
        right = await ann.put("/admin/accounts/me/password", json=body)

    assert error_fields(problem(wrong, 400, "VALIDATION_FAILED")) == {"currentPassword"}
    assert right.status_code == 204
    assert await token_of(admin, password="another password")


async def test_a_token_of_the_command_line_has_no_password(admin: Client) -> None:
    body = {"currentPassword": PASSWORD, "newPassword": "another password"}

    problem(await admin.put("/admin/accounts/me/password", json=body), 403, "ACCOUNT_HAS_NO_PASSWORD")


async def test_a_disabled_account_cannot_log_in_until_it_is_enabled(admin: Client) -> None:
    made = await admin.made("/admin/accounts", person_body())
    log_in = {"email": "ann@example.com", "password": PASSWORD}

    disabled = (await admin.patch(f"/admin/accounts/{made['id']}/disable")).json()
    problem(await admin.post("/auth/login", json=log_in), 401, "UNAUTHENTICATED")
    enabled = (await admin.patch(f"/admin/accounts/{made['id']}/enable")).json()

    assert disabled["disabledAt"] is not None
    assert enabled["disabledAt"] is None
    assert (await admin.post("/auth/login", json=log_in)).status_code == 200


async def test_the_last_admin_cannot_be_disabled(admin: Client) -> None:
    first = await admin.made("/admin/accounts", person_body(role="admin"))

    problem(await admin.patch(f"/admin/accounts/{first['id']}/disable"), 409, "ACCOUNT_LAST_ADMIN")
    await admin.made("/admin/accounts", person_body(role="admin", email="bob@example.com"))
    assert (await admin.patch(f"/admin/accounts/{first['id']}/disable")).status_code == 200


@pytest.mark.parametrize("path", ["disable", "enable", "password"])
async def test_an_unknown_account_is_not_found(path: str, admin: Client) -> None:
    address = f"/admin/accounts/{SystemIds().make()}/{path}"
    answer = await (
        admin.put(address, json={"password": PASSWORD}) if path == "password" else admin.patch(address)
    )

    problem(answer, 404, "ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.ADMIN}))
async def test_only_admins_see_accounts(role: Role, control: ControlPlane) -> None:
    async with control.acting_as(role) as client:
        problem(await client.get("/admin/accounts"), 403, "FORBIDDEN")
        assert (await client.get("/admin/accounts/me")).json()["role"] == role.value
