"""The audit trail says who wrote an entry by name, to those who may know it."""

from uuid import UUID

from adloom.core.caller import Role
from tests.identity.test_accounts import person_body, token_of
from tests.resource.audit.test_trail import trail
from tests.support.control import Client, ControlPlane


async def test_people_and_keys_are_named_to_admins_also_when_they_are_gone(
    control: ControlPlane, admin: Client
) -> None:
    made = await admin.made("/admin/accounts", person_body(role="admin"))
    await admin.made("/admin/accounts", person_body(role="admin", email="bob@example.com"))
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as ann:
        banner = await ann.make_banner(title="Of Ann")
    key = await admin.made("/admin/api-keys", {"name": "Nightly import", "role": "admin"})
    async with control.client(**{"X-API-Key": key["key"]}) as machine:
        await machine.patch(f"/admin/banners/{banner['id']}", json={"title": "Of the import"})

    entries = await trail(admin, noun="banner")
    await admin.delete(f"/admin/accounts/{made['id']}")
    later = await trail(admin, noun="banner")

    names = ["Nightly import", "ann@example.com"]
    assert [one["subjectName"] for one in entries] == [one["subjectName"] for one in later] == names
    assert entries[1]["names"][made["id"]] == "ann@example.com"  # In `createdBy`.
    by_address = await trail(admin, subject="ANN@example.com", noun="banner")
    assert [one["subject"] for one in by_address] == [made["id"]]
    assert await trail(admin, subject="bob@example.com", noun="banner") == []


async def test_an_account_knows_its_own_people_only(control: ControlPlane, admin: Client) -> None:
    shop = await admin.make_advertiser(name="Birch & Co")
    await admin.made("/admin/accounts", person_body(role="advertiser", accountId=shop["id"]))
    await admin.made("/admin/accounts", person_body(role="admin", email="boss@example.com"))
    async with control.client(Authorization=f"Bearer {await token_of(admin)}") as own:
        banner = await own.make_banner()
    async with control.client(Authorization=f"Bearer {await token_of(admin, 'boss@example.com')}") as boss:
        await boss.patch(f"/admin/banners/{banner['id']}", json={"title": "Better"})

    async with control.acting_as(Role.ADVERTISER, UUID(shop["id"])) as own:
        entries = await trail(own, noun="banner")
        guessed = await trail(own, noun="banner", subject="boss@example.com")

    assert [one["subjectName"] for one in entries] == [None, "ann@example.com"]
    assert guessed == []
    assert "boss@example.com" not in str(entries)
