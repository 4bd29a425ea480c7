"""Dependent entities: a write touches in the index everything that it changes, and the trail records it."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, problem


async def touched(pool: Pool) -> set[str]:
    """Return what the last write has touched."""
    rows = await pool.fetch(
        """
        SELECT noun FROM catalog_changes WHERE version = (SELECT version FROM catalog_version)
        """
    )
    return {row["noun"] for row in rows}


async def version_of(pool: Pool) -> int:
    return await pool.fetchval("SELECT version FROM catalog_version")


async def trail(pool: Pool, noun: str) -> list[tuple[str, dict[str, Any]]]:
    rows = await pool.fetch("SELECT action, changes FROM audit_entries WHERE noun = $1 ORDER BY id", noun)
    return [(row["action"], row["changes"]) for row in rows]


async def test_deleting_an_advertiser_touches_everything_it_owns(admin: Client, pool: Pool) -> None:
    advertiser = await admin.make_advertiser()
    await admin.make_campaign(advertiserId=advertiser["id"])
    await admin.make_banner(advertiserId=advertiser["id"])
    path = f"/admin/advertisers/{advertiser['id']}"

    assert (await admin.patch(path, json={"name": "Other"})).status_code == 200
    before = await version_of(pool)
    assert (await admin.delete(path)).status_code == 204
    after_deletion = await touched(pool)
    assert (await admin.post(f"{path}/restore")).status_code == 200

    assert after_deletion == await touched(pool) == {"advertiser", "campaign", "banner"}
    assert await version_of(pool) == before + 2


async def test_deleting_a_publisher_touches_its_placements(admin: Client, pool: Pool) -> None:
    publisher = await admin.make_publisher()
    await admin.make_placement(publisherId=publisher["id"])
    path = f"/admin/publishers/{publisher['id']}"
    before = await version_of(pool)

    assert (await admin.delete(path)).status_code == 204
    assert (await admin.post(f"{path}/restore")).status_code == 200

    assert await touched(pool) == {"placement"}
    assert await version_of(pool) == before + 2


async def test_deleting_an_account_without_property_changes_nothing_else_in_the_index(
    admin: Client, pool: Pool
) -> None:
    advertiser, site = await admin.make_advertiser(), await admin.make_site()

    await admin.put(f"/admin/advertisers/{advertiser['id']}/budget", json={"dailyBudgetPaisa": 1})
    await admin.delete(f"/admin/sites/{site['id']}")

    assert await touched(pool) == {"site"}
    assert [action for action, _ in await trail(pool, "advertiser")] == ["create", "update"]
    assert [action for action, _ in await trail(pool, "site")] == ["create", "delete"]


@pytest.mark.parametrize("kind", ["brand", "category", "product", "seo"])
async def test_banners_are_touched_when_their_references_are_deleted(
    kind: str, admin: Client, pool: Pool
) -> None:
    record_id: Any = str(uuid4()) if kind == "seo" else 7
    await admin.make_reference(kind, id=record_id)
    banner = await admin.make_banner(**{f"{kind}Id": record_id})
    other = await admin.make_banner()

    assert (await admin.delete(f"/admin/references/{kind}/{record_id}")).status_code == 204

    after = (await admin.get(f"/admin/banners/{banner['id']}")).json()
    assert after[f"{kind}Id"] is None
    assert after["updatedAt"] != banner["updatedAt"]
    assert (await admin.get(f"/admin/banners/{other['id']}")).json() == other
    assert await touched(pool) == {"banner"}
    assert (await trail(pool, "banner"))[-1] == ("update", {f"{kind}Id": {"from": record_id, "to": None}})
    assert [action for action, _ in await trail(pool, kind)] == ["create", "delete"]


async def test_placements_are_touched_when_their_site_is_deleted(admin: Client, pool: Pool) -> None:
    site = await admin.make_site()
    placement = await admin.make_placement(siteId=site["id"])

    assert (await admin.delete(f"/admin/sites/{site['id']}")).status_code == 204

    after = (await admin.get(f"/admin/placements/{placement['id']}")).json()
    assert after["updatedAt"] != placement["updatedAt"]
    assert await touched(pool) == {"placement", "site"}
    assert (await trail(pool, "placement"))[-1] == ("update", {"siteId": {"from": site["id"], "to": None}})


async def test_a_change_of_a_rule_is_a_change_of_its_campaign(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign()
    rule = await admin.make_rule(campaign)
    path = f"/admin/targeting-rules/{rule['id']}"

    assert await touched(pool) == {"campaign"}
    assert (await admin.patch(path, json={"isActive": False})).status_code == 200
    assert await touched(pool) == {"campaign"}
    assert (await admin.delete(path)).status_code == 204

    assert await version_of(pool) == 4
    assert [action for action, _ in await trail(pool, "targeting_rule")] == ["create", "deactivate", "delete"]


async def test_an_unchanged_rule_writes_nothing(admin: Client, pool: Pool) -> None:
    rule = await admin.make_rule(await admin.make_campaign(), value=["DE", "AT"])
    before = await version_of(pool)

    answer = await admin.patch(f"/admin/targeting-rules/{rule['id']}", json={"value": ["de", "at", "de"]})

    assert answer.json() == rule
    assert await version_of(pool) == before


async def test_a_stale_write_of_a_rule_is_refused(admin: Client) -> None:
    rule = await admin.make_rule(await admin.make_campaign())
    path = f"/admin/targeting-rules/{rule['id']}"
    seen = (await admin.get(path)).headers["etag"]
    assert (await admin.patch(path, json={"value": ["AT"]})).status_code == 200

    stale = await admin.patch(path, json={"value": ["CH"]}, headers={"If-Match": seen})

    assert stale.status_code == 409
    assert (await admin.get(path)).json()["value"] == ["AT"]


async def test_a_campaign_has_at_most_100_rules(admin: Client) -> None:
    campaign, other = await admin.make_campaign(), await admin.make_campaign()
    rules = [await admin.make_rule(campaign) for _ in range(100)]

    body = {"campaignId": campaign["id"], "ruleType": "device", "operator": "in", "value": ["mobile"]}
    problem(await admin.post("/admin/targeting-rules", json=body), 409, "TARGETING_RULE_LIMIT_REACHED")
    await admin.make_rule(other)
    assert (await admin.delete(f"/admin/targeting-rules/{rules[0]['id']}")).status_code == 204
    await admin.make_rule(campaign)


async def made_by(control: ControlPlane, subject: str) -> Json:
    token = control.token(Role.ADMIN, subject=subject)
    async with control.client(Authorization=f"Bearer {token}") as client:
        banner, campaign = await client.make_banner(), await client.make_campaign()
    assert banner["createdBy"] == campaign["createdBy"]
    return banner


async def test_an_existing_user_is_stored_as_creator(control: ControlPlane, pool: Pool) -> None:
    user_id: UUID = SystemIds().make()
    await pool.execute(
        """
        INSERT INTO users (public_id, email, password_hash, role, created_at)
        VALUES ($1, 'ada@example.com', '', 'admin', now())
        """,
        user_id,
    )

    assert (await made_by(control, str(user_id)))["createdBy"] == str(user_id)


@pytest.mark.parametrize("subject", ["cli", f"key:{UNKNOWN_ID}", ""])
async def test_only_existing_users_are_stored_as_creator(subject: str, control: ControlPlane) -> None:
    assert (await made_by(control, subject))["createdBy"] is None
