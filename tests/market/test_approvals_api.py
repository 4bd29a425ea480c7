"""What publishers see and decide of the banners on their sites, over HTTP."""

import pytest

from adloom.core.actor import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON, Json
from tests.support.control import ControlPlane, admin, control
from tests.support.pages import a_candidate, insert_approval, write_shortlist

__all__ = ["admin", "control"]


@pytest.fixture
async def site(control: ControlPlane, pool: Pool) -> Json:
    """A site of a publisher, where a banner waits for a slot of a page."""
    publisher_id = SystemIds().new()
    async with control.acting_as(Role.PUBLISHER, publisher_id) as publisher:
        site = await publisher.make_site(domain="magazine.test")
        slot = await publisher.make_placement(
            slug="aside", siteId=site["id"], delivery="contextual", layoutType="sidebar_single"
        )
    async with control.acting_as(Role.ADMIN) as admin:
        banner, campaign = await admin.make_banner(title="Tea"), await admin.make_campaign(name="Autumn")
    await insert_approval(pool, site["id"], banner["id"], campaign["id"], at=NOON)
    listed = [a_candidate(banner["id"], campaign["id"], is_pending=True)]
    for path in ("a", "b"):
        await write_shortlist(pool, site["id"], f"magazine.test/{path}", {slot["slug"]: listed}, at=NOON)
    return {**site, "publisherId": publisher_id, "bannerId": banner["id"]}


async def test_a_banner_is_listed_with_what_it_takes_to_show_it(control: ControlPlane, site: Json) -> None:
    async with control.acting_as(Role.PUBLISHER, site["publisherId"]) as publisher:
        answer = await publisher.get(f"/admin/sites/{site['id']}/approvals")

    (row,) = answer.json()["items"]
    assert (row["title"], row["campaignName"], row["state"]) == ("Tea", "Autumn", "pending")
    assert (row["pages"], row["slots"], row["layoutType"]) == (2, 1, "sidebar_single")
    assert {"subheadline", "mobileImageUrl", "videoUrl", "mediaVariants", "bgColor", "ctaUrl"} <= set(row)


async def test_sites_are_listed_with_what_waits_there(control: ControlPlane, site: Json, pool: Pool) -> None:
    async with control.acting_as(Role.PUBLISHER, site["publisherId"]) as publisher:
        await publisher.make_site(domain="quiet.test")
        listed = (await publisher.get("/admin/approvals")).json()["items"]
    async with control.acting_as(Role.PUBLISHER) as other:
        others = (await other.get("/admin/approvals")).json()["items"]

    assert [(one["domain"], one["pending"], one["approved"]) for one in listed] == [
        ("magazine.test", 1, 0),
        ("quiet.test", 0, 0),
    ]
    assert others == []

    await pool.execute("UPDATE banners SET deleted_at = now()")
    async with control.acting_as(Role.ADMIN) as admin:
        left = (await admin.get("/admin/approvals", params={"sort": "name"})).json()["items"]

    assert [one["pending"] for one in left] == [0, 0]


async def test_a_decision_is_in_the_history_of_its_site(control: ControlPlane, site: Json) -> None:
    async with control.acting_as(Role.PUBLISHER, site["publisherId"]) as publisher:
        body = {"decision": "reject", "bannerIds": [site["bannerId"]], "reason": "Too loud."}
        await publisher.post(f"/admin/sites/{site['id']}/approvals", json=body)
        entries = (await publisher.get("/admin/audit", params={"siteId": site["id"]})).json()["items"]

    assert [(one["noun"], one["action"]) for one in entries] == [("approval", "reject"), ("site", "create")]
    assert entries[0]["changes"]["reason"]["to"] == "Too loud."
