"""What publishers see and decide of the banners on their sites, over HTTP."""

import asyncio
from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, SiteId, SystemIds
from adloom.market.approval import ApprovalState
from adloom.market.approvals.store import LOCK_BANNERS
from adloom.market.shortlist.model import ApprovalSeen
from adloom.market.site_store import load_sites
from adloom.market.store import MarketWriter
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, admin, control
from tests.support.pages import a_candidate, insert_approval, insert_creative, write_shortlist

__all__ = ["admin", "control"]


@pytest.fixture
async def site(control: ControlPlane, pool: Pool) -> Json:
    """A site of a publisher, where a banner waits for a slot of a page."""
    publisher_id = SystemIds().make()
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
    return {**site, "publisherId": publisher_id, "bannerId": banner["id"], "campaignId": campaign["id"]}


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


async def test_a_banner_waits_only_while_it_could_be_shown(
    control: ControlPlane, site: Json, pool: Pool
) -> None:
    async with control.acting_as(Role.ADMIN) as admin:
        campaign, banner = f"/admin/campaigns/{site['campaignId']}", f"/admin/banners/{site['bannerId']}"
        path = f"/admin/sites/{site['id']}"

        async def is_waiting() -> bool:
            listed = (await admin.get(f"{path}/approvals", params={"state": "pending"})).json()["items"]
            (counts,) = (await admin.get("/admin/approvals")).json()["items"]
            assert counts["pending"] == len(listed)
            return [one["bannerId"] for one in listed] == [site["bannerId"]]

        async def change(address: str, **body: object) -> None:
            answer = await admin.patch(address, json=body)
            assert answer.status_code == 200, answer.text

        await change(banner, ctaUrl="https://www.eu.tea.example.com:8443/assam")
        await change(campaign, adProductCategory="1004")
        assert await is_waiting()
        for address, before, after in (
            (path, {"adProductBlocklist": ["1002"]}, {"adProductBlocklist": ["1500"]}),
            (path, {"blockedDomains": ["tea.example.com"]}, {"blockedDomains": ["ea.example.com"]}),
            (banner, {"isActive": False}, {"isActive": True}),
            (f"{campaign}/pause", {}, None),
        ):
            await change(address, **before)
            assert not await is_waiting(), before
            if after is not None:
                await change(address, **after)
                assert await is_waiting(), after

        other = await admin.make_campaign(name="Winter")
        await insert_creative(pool, site["bannerId"], other["id"])
        assert not await is_waiting(), "it does not run either"
        await pool.execute("UPDATE campaigns SET status = 'active' WHERE name = 'Winter'")
        assert await is_waiting()
        assert (await admin.delete(campaign)).status_code == 204
        assert await is_waiting()
        (row,) = (await admin.get(f"{path}/approvals")).json()["items"]
        assert row["campaignName"] == "Winter"


async def test_a_decision_is_in_the_history_of_its_site(control: ControlPlane, site: Json) -> None:
    async with control.acting_as(Role.PUBLISHER, site["publisherId"]) as publisher:
        body = {"decision": "reject", "bannerIds": [site["bannerId"]], "reason": "Too loud."}
        await publisher.post(f"/admin/sites/{site['id']}/approvals", json=body)
        entries = (await publisher.get("/admin/audit", params={"siteId": site["id"]})).json()["items"]

    assert [(one["noun"], one["action"]) for one in entries] == [("approval", "reject"), ("site", "create")]
    assert entries[0]["changes"]["reason"]["to"] == "Too loud."


async def test_who_decided_is_named_to_those_who_may_know(
    control: ControlPlane, admin: Client, site: Json
) -> None:
    person = {"email": "ann@example.com", "password": "a good password"}
    await admin.made("/admin/accounts", {**person, "role": "admin"})
    path = f"/admin/sites/{site['id']}/approvals"
    async with control.client() as ann:
        token = (await ann.post("/auth/login", json=person)).json()["accessToken"]
        ann.headers["Authorization"] = f"Bearer {token}"
        await ann.post(path, json={"decision": "approve", "bannerIds": [site["bannerId"]]})
    async with control.acting_as(Role.PUBLISHER, site["publisherId"]) as publisher:
        (known,) = (await admin.get(path)).json()["items"]
        (unknown,) = (await publisher.get(path)).json()["items"]

    assert known["decidedByName"] == "ann@example.com"
    assert unknown["decidedByName"] is None
    assert unknown["decidedBy"] == known["decidedBy"]


async def test_a_banner_that_has_changed_since_it_was_looked_at_is_not_approved(
    admin: Client, site: Json
) -> None:
    path, banner_id = f"/admin/sites/{site['id']}/approvals", site["bannerId"]

    async def decide(updated_at: object, about: str = banner_id) -> tuple[int, str, str]:
        body = {"decision": "approve", "bannerIds": [banner_id], "updatedAt": {about: updated_at}}
        answer = (await admin.post(path, json=body)).json()
        (row,) = (await admin.get(path)).json()["items"]
        return answer.get("status", 200), answer.get("errorCode", ""), row["state"]

    (row,) = (await admin.get(path)).json()["items"]
    await admin.patch(f"/admin/banners/{banner_id}", json={"headline": "Something else"})
    stale = await decide(row["bannerUpdatedAt"])
    malformed = await decide("yesterday")
    about_another = await decide(row["bannerUpdatedAt"], site["id"])
    (row,) = (await admin.get(path)).json()["items"]
    fresh = await decide(row["bannerUpdatedAt"])

    assert stale == (409, "STALE_WRITE", "pending")
    assert malformed == about_another == (400, "VALIDATION_FAILED", "pending")
    assert fresh == (200, "", "approved")


async def test_a_change_waits_for_an_approval_that_is_being_written(
    admin: Client, site: Json, pool: Pool
) -> None:
    path = f"/admin/banners/{site['bannerId']}"
    async with asyncio.TaskGroup() as group, pool.acquire() as connection, connection.transaction():
        await connection.fetch(LOCK_BANNERS, [UUID(site["bannerId"])])
        change = group.create_task(admin.patch(path, json={"headline": "Something else"}))
        done, _ = await asyncio.wait([change], timeout=0.5)
        await connection.execute("UPDATE site_approvals SET state = 'approved'")
    (row,) = (await admin.get(f"/admin/sites/{site['id']}/approvals")).json()["items"]

    assert not done
    assert row["state"] == "pending"


async def test_a_banner_that_looks_otherwise_is_decided_again(admin: Client, site: Json) -> None:
    path = f"/admin/sites/{site['id']}/approvals"

    async def change_approved(**change: object) -> str:
        await admin.post(path, json={"decision": "approve", "bannerIds": [site["bannerId"]]})
        answer = await admin.patch(f"/admin/banners/{site['bannerId']}", json=change)
        assert answer.status_code == 200, answer.text
        (row,) = (await admin.get(path)).json()["items"]
        return row["state"]

    assert await change_approved(utmSource="newsletter") == "approved"
    assert await change_approved(headline="Other words") == "pending"
    assert await change_approved(primaryImageAlt="What a screen reader says") == "pending"
    assert await change_approved(fallbackPlaceholderUrl="https://cdn.example.com/b.png") == "pending"


async def test_the_mode_of_a_site_holds_for_what_waited_before_and_not_for_what_was_revoked(
    admin: Client, site: Json, pool: Pool
) -> None:
    path, banner_id = f"/admin/sites/{site['id']}", BannerId(UUID(site["bannerId"]))
    assert (await admin.patch(path, json={"approvalMode": "automatic"})).status_code == 200
    seen = ApprovalSeen(
        site_id=SiteId(UUID(site["id"])),
        banner_id=banner_id,
        campaign_id=CampaignId(UUID(site["campaignId"])),
        advertiser_id=None,
        state=ApprovalState.APPROVED,
        at=NOON,
    )

    async def judge_and_record() -> tuple[ApprovalState, str]:
        async with pool.acquire() as connection:
            [configured] = (await load_sites(connection, [seen.site_id])).values()
        await PostgresStateStore(pool, MarketWriter(), ManualClock(NOON)).commit([], [seen])
        (row,) = (await admin.get(f"{path}/approvals")).json()["items"]
        return configured.approvals.judge(banner_id, None), row["state"]

    assert await judge_and_record() == (ApprovalState.APPROVED, "approved")
    await admin.post(f"{path}/approvals", json={"decision": "revoke", "bannerIds": [site["bannerId"]]})
    assert await judge_and_record() == (ApprovalState.PENDING, "pending")
