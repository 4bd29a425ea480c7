"""Every write is recorded in the audit trail, in its own transaction; an account reads only its own entries."""

from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.resource.audit.entry import AuditSubject, make_system_author
from adloom.resource.changes import Catalog
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import Json, a_campaign
from tests.support.control import Client, ControlPlane, problem


async def trail(client: Client, **query: str) -> list[Json]:
    answer = await client.get("/admin/audit", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def test_a_creation_names_its_author_and_its_fields(control: ControlPlane) -> None:
    async with control.client(
        Authorization=f"Bearer {control.token(Role.ADMIN)}", **{"X-Request-Id": "request-of-the-test"}
    ) as client:
        banner = await client.make_banner(title="Tea")

        entries = await trail(client)

    assert len(entries) == 1
    assert entries[0] | {"changes": {}} == {
        "at": "2026-11-15T12:00:00Z",
        "subject": "test",
        "subjectName": None,
        "role": "admin",
        "accountId": None,
        "requestId": "request-of-the-test",
        "network": "127.0.0.0/24",
        "noun": "banner",
        "nounId": banner["id"],
        "ownerId": None,
        "action": "create",
        "changes": {},
        "names": {banner["id"]: "Tea"},
    }
    assert entries[0]["changes"]["title"] == {"from": None, "to": "Tea"}


async def test_a_change_has_old_and_new_values(admin: Client) -> None:
    placement = await admin.make_placement(label="Old")

    await admin.patch(f"/admin/placements/{placement['id']}", json={"label": "New", "maxBanners": 1})

    newest = (await trail(admin))[0]
    assert (newest["action"], newest["changes"]) == ("update", {"label": {"from": "Old", "to": "New"}})


async def test_an_entry_has_the_names_of_what_it_mentions(control: ControlPlane, admin: Client) -> None:
    placement = await admin.make_placement(label="Front page")
    advertiser = await admin.make_advertiser(name="Birch & Co")
    campaign = await admin.make_campaign(name="Autumn", advertiserId=advertiser["id"])
    await admin.link(campaign, placement)

    async with control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as own:
        newest = (await trail(own))[0]

    assert newest["noun"] == "link"
    assert newest["names"] == {
        campaign["id"]: "Autumn",
        placement["id"]: "Front page",
        advertiser["id"]: "Birch & Co",
    }


async def test_a_change_without_a_difference_writes_nothing(admin: Client, pool: Pool) -> None:
    placement = await admin.make_placement(label="Same")

    answer = await admin.patch(f"/admin/placements/{placement['id']}", json={"label": "Same"})

    assert answer.json() == placement
    assert len(await trail(admin)) == 1
    assert await pool.fetchval("SELECT version FROM catalog_version") == 1


async def test_campaign_moves_are_named_in_the_trail(admin: Client) -> None:
    campaign = await admin.make_campaign()
    path = f"/admin/campaigns/{campaign['id']}"

    await admin.patch(f"{path}/activate")
    await admin.patch(f"{path}/pause")
    await admin.delete(path)
    await admin.post(f"{path}/restore")

    entries = await trail(admin, noun="campaign", nounId=campaign["id"])
    assert [entry["action"] for entry in entries] == ["restore", "delete", "pause", "activate", "create"]
    assert entries[2]["changes"] == {"status": {"from": "active", "to": "paused"}}


async def test_links_and_assignments_are_in_the_trail_also_when_deleted_together(admin: Client) -> None:
    campaign, placement, banner = (
        await admin.make_campaign(),
        await admin.make_placement(),
        await admin.make_banner(),
    )
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    link_id = f"{campaign['id']}/{placement['id']}"
    path = f"/admin/campaigns/{campaign['id']}/placements/{placement['id']}"

    await admin.patch(f"{path}/banners/{banner['id']}", json={"weight": 7})
    await admin.patch(path, json={"isActive": False})
    await admin.delete(path)

    links = await trail(admin, noun="link", nounId=link_id)
    assignments = await trail(admin, noun="assignment", nounId=f"{link_id}/{banner['id']}")
    assert [entry["action"] for entry in links] == ["delete", "deactivate", "create"]
    assert [entry["action"] for entry in assignments] == ["delete", "update", "create"]
    assert assignments[1]["changes"] == {"weight": {"from": 100, "to": 7}}


async def test_the_trail_lists_what_is_deleted_with_a_placement(admin: Client) -> None:
    campaign, placement, banner = (
        await admin.make_campaign(),
        await admin.make_placement(),
        await admin.make_banner(),
    )
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner, isActive=False)

    await admin.delete(f"/admin/placements/{placement['id']}")

    deleted = [entry["noun"] for entry in await trail(admin) if entry["action"] == "delete"]
    assert deleted == ["placement", "link", "assignment"]


async def test_a_write_that_is_refused_leaves_no_trail(admin: Client) -> None:
    placement = await admin.make_placement(slug="taken")
    other = await admin.make_placement()

    answer = await admin.patch(f"/admin/placements/{other['id']}", json={"slug": "taken"})

    problem(answer, 409, "PLACEMENT_SLUG_EXISTS")
    assert {entry["nounId"] for entry in await trail(admin)} == {placement["id"], other["id"]}
    assert len(await trail(admin)) == 2


async def test_a_part_of_the_system_is_the_author_of_its_writes(
    pool: Pool, valkey: Valkey, admin: Client
) -> None:
    catalog = Catalog(pool, valkey).with_author(make_system_author("schedule"))

    async with catalog.write() as write:
        write.record_creation(AuditSubject("campaign", "x", None), a_campaign())

    entry = (await trail(admin))[0]
    assert (entry["subject"], entry["role"]) == ("system:schedule", "system")


async def test_an_account_reads_all_entries_about_its_own_entities(
    control: ControlPlane, admin: Client
) -> None:
    account_id = SystemIds().make()
    async with (
        control.acting_as(Role.ADVERTISER, account_id) as owner,
        control.acting_as(Role.ADVERTISER) as other_advertiser,
        control.acting_as(Role.PUBLISHER, account_id) as publisher,
    ):
        campaign = await owner.make_campaign()
        placement = await admin.make_placement()
        await owner.link(campaign, placement)
        await admin.patch(f"/admin/campaigns/{campaign['id']}", json={"name": "By the admin"})
        await other_advertiser.make_banner()

        seen = await trail(owner)
        by_id = await trail(other_advertiser, noun="campaign", nounId=campaign["id"])

        assert [(entry["noun"], entry["role"]) for entry in seen] == [
            ("campaign", "admin"),
            ("link", "advertiser"),
            ("campaign", "advertiser"),
            # The account itself, created when its token was first used.
            ("advertiser", "system"),
        ]
        assert all(entry["ownerId"] == str(account_id) for entry in seen)
        assert by_id == []
        # The same id in another role is another account.
        assert [entry["noun"] for entry in await trail(publisher)] == ["publisher"]


async def test_a_viewer_reads_everything(control: ControlPlane, admin: Client) -> None:
    await admin.make_banner()

    async with control.acting_as(Role.VIEWER) as viewer:
        assert len(await trail(viewer)) == 1


async def test_the_trail_can_be_filtered_by_author_and_time(admin: Client) -> None:
    await admin.make_banner()

    assert len(await trail(admin, subject="test")) == 1
    assert await trail(admin, subject="another") == []
    assert len(await trail(admin, **{"from": "2026-11-15", "to": "2026-11-15"})) == 1
    assert len(await trail(admin, **{"from": "2026-11-15T12:00:00Z"})) == 1
    assert await trail(admin, to="2026-11-15T12:00:00Z") == []
    assert await trail(admin, **{"from": "2026-11-16"}) == []


@pytest.mark.parametrize("query", [{"from": "yesterday"}, {"to": "9999-12-31"}, {"sort": "id"}, {"who": "x"}])
async def test_an_invalid_trail_query_is_refused(query: dict[str, str], admin: Client) -> None:
    problem(await admin.get("/admin/audit", params=query), 400, "VALIDATION_FAILED")


async def test_pages_are_newest_first(admin: Client) -> None:
    made = [await admin.make_banner() for _ in range(3)]

    first = await admin.get("/admin/audit", params={"pageSize": "2"})
    last = await admin.get("/admin/audit", params={"pageSize": "2", "page": "2"})

    ids = [entry["nounId"] for answer in (first, last) for entry in answer.json()["items"]]
    assert ids == [banner["id"] for banner in reversed(made)]
    assert first.json()["totalCount"] == 3
    assert all(UUID(one) for one in ids)
