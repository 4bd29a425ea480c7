"""Who gave or removed a page by hand is on the audit trail."""

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, admin, control

__all__ = ["admin", "control"]

CATS, DOGS = "424", "425"


async def history(client: Client, site: Json) -> list[Json]:
    """Return the entries of a site but for its making, oldest first."""
    answer = await client.get("/admin/audit", params={"siteId": site["id"]})
    return [one for one in reversed(answer.json()["items"]) if one["noun"] != "site"]


async def test_what_is_given_and_removed_by_hand_is_recorded_with_who_did_it(control: ControlPlane) -> None:
    owner = SystemIds().make()
    async with control.acting_as(Role.PUBLISHER, owner) as publisher:
        site = await publisher.make_site(domain="magazine.test")
        path, url = f"/admin/sites/{site['id']}/pages", "https://magazine.test/paws"
        for category in (CATS, CATS, DOGS):
            given = [{"id": category, "confidence": 1}]
            page = (await publisher.post(path, json={"url": url, "categories": given})).json()
        await publisher.delete(f"{path}/{page['id']}")
        await publisher.post(path, json={"url": url, "text": "Cats and dogs."})
        entries = await history(publisher, site)

    assert [one["action"] for one in entries] == ["create", "update", "delete", "create"]
    assert {one["noun"] for one in entries} == {"page"}
    assert {one["accountId"] for one in entries} == {str(owner)}
    assert entries[1]["changes"]["categories"] == {"from": {CATS: 1.0}, "to": {DOGS: 1.0}}
    assert entries[2]["changes"]["url"] == {"from": "magazine.test/paws", "to": None}
    assert "text" in entries[3]["changes"]
