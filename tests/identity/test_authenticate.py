"""Authentication by API key and token."""

from uuid import UUID

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.control import Client, ControlPlane, problem


async def make_key(admin: Client, **fields: str) -> dict[str, str]:
    return await admin.made("/admin/api-keys", {"name": "shop", "role": "viewer", **fields})


async def test_an_api_key_opens_the_control_plane_in_either_header(
    control: ControlPlane, admin: Client
) -> None:
    key = (await make_key(admin))["key"]

    for headers in (
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"bearer {key}"},
        {"X-API-Key": key},
    ):
        async with control.client(**headers) as machine:
            assert (await machine.get("/admin/banners")).status_code == 200
            problem(await machine.post("/admin/banners", json={}), 403, "FORBIDDEN")


async def test_a_revoked_key_is_refused_immediately(control: ControlPlane, admin: Client) -> None:
    key = await make_key(admin)
    assert (await admin.delete(f"/admin/api-keys/{key['id']}")).status_code == 204

    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        problem(await machine.get("/admin/banners"), 401, "UNAUTHENTICATED")
    problem(await admin.delete(f"/admin/api-keys/{key['id']}"), 409, "API_KEY_ALREADY_REVOKED")


async def test_a_key_is_shown_once_and_stored_as_a_hash(admin: Client, pool: Pool) -> None:
    key = await make_key(admin)

    listed = (await admin.get("/admin/api-keys")).json()["items"]
    assert listed == [{name: value for name, value in key.items() if name != "key"}]
    assert key["key"] not in str(await pool.fetch("SELECT * FROM api_keys"))


async def test_a_jwt_does_not_pass_as_an_api_key(control: ControlPlane) -> None:
    async with control.client(**{"X-API-Key": control.token(Role.ADMIN)}) as machine:
        problem(await machine.get("/admin/banners"), 401, "UNAUTHENTICATED")


async def test_a_key_of_an_account_sees_only_its_own_entities(control: ControlPlane, admin: Client) -> None:
    await admin.make_banner()
    key = await make_key(admin, role="advertiser", accountId=(await admin.make_advertiser())["id"])

    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        mine = await machine.make_banner()
        listed = (await machine.get("/admin/banners")).json()

    assert [banner["id"] for banner in listed["items"]] == [mine["id"]]
    assert mine["advertiserId"] == key["accountId"]


async def test_an_account_is_created_at_its_first_use(control: ControlPlane, pool: Pool) -> None:
    advertiser, publisher = SystemIds().make(), SystemIds().make()

    for role, account_id in ((Role.ADVERTISER, advertiser), (Role.PUBLISHER, publisher)):
        async with control.acting_as(role, account_id) as client:
            path = "/admin/campaigns" if role is Role.ADVERTISER else "/admin/placements"
            assert (await client.get(path)).status_code == 200
            assert (await client.get(path)).status_code == 200

    assert await ids_in(pool, "advertisers") == [advertiser]
    assert await ids_in(pool, "publishers") == [publisher]


async def test_the_token_of_a_closed_account_is_refused(control: ControlPlane, pool: Pool) -> None:
    async with control.acting_as(Role.ADVERTISER) as client:
        await client.make_campaign()
        await pool.execute("UPDATE advertisers SET deleted_at = now()")

        problem(await client.get("/admin/campaigns"), 401, "UNAUTHENTICATED")


async def ids_in(pool: Pool, table: str) -> list[UUID]:
    return [row[0] for row in await pool.fetch(f"SELECT public_id FROM {table}")]  # noqa: S608 - a name of the test
