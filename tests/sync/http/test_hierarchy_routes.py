"""Ad accounts, sell pages, campaigns, ad sets and ads over HTTP."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from adloom.core.caller import Role
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.postgres import Pool
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import (
    Client,
    ControlPlane,
    control_settings,
    error_fields,
    problem,
    running_control,
)
from tests.support.for_each import for_each
from tests.sync.http.seller import API, SEAL, Seller

NOUNS = ["accounts", "sellpages", "campaigns", "adsets", "ads"]
CHANGES: dict[str, dict[str, Any]] = {
    "accounts": {"name": "Renamed", "isActive": False, "timezone": "Asia/Tokyo", "externalId": "act_1"},
    "sellpages": {"name": "Renamed", "url": "https://shop.example.com/"},
    "campaigns": {"status": "PAUSED", "budget": 99.95, "budgetType": "LIFETIME", "externalCampaignId": "c1"},
    "adsets": {"status": "ARCHIVED", "externalAdsetId": "s1"},
    "ads": {"name": "Renamed", "externalAdId": "a1"},
}
CODES = {
    "accounts": "AD_ACCOUNT_NOT_FOUND",
    "sellpages": "SELLPAGE_NOT_FOUND",
    "campaigns": "SYNCED_CAMPAIGN_NOT_FOUND",
    "adsets": "ADSET_NOT_FOUND",
    "ads": "AD_NOT_FOUND",
}


def moment(thing: Json) -> datetime:
    return datetime.fromisoformat(thing["updatedAt"])


async def test_a_new_entity_has_its_defaults(seller: Seller) -> None:
    account, campaign = seller.made["accounts"], seller.made["campaigns"]

    assert {one["sellerId"] for one in seller.made.values()} == {str(seller.id)}
    assert (account["platform"], account["isActive"], account["currency"], account["timezone"]) == (
        "mock",
        True,
        "USD",
        "UTC",
    )
    assert (account["hasCredentials"], account["credentialsExpiredAt"]) == (False, None)
    assert (campaign["status"], campaign["budget"], campaign["budgetType"]) == ("ACTIVE", 2500, "DAILY")
    assert campaign["adAccountId"] == account["id"]
    assert campaign["sellpageId"] == seller.id_of("sellpages")
    assert seller.made["adsets"]["campaignId"] == campaign["id"]
    assert seller.made["ads"]["adsetId"] == seller.id_of("adsets")


@pytest.mark.parametrize("noun", NOUNS)
async def test_an_entity_is_read_listed_and_changed(noun: str, seller: Seller) -> None:
    read = await seller.client.get(seller.path(noun))
    changed = await seller.client.patch(seller.path(noun), json=CHANGES[noun])
    listed = await seller.client.get(f"{API}/{noun}", params={"sort": "name"})

    assert read.json() == seller.made[noun]
    assert changed.status_code == 200, changed.text
    assert changed.json() == {
        **seller.made[noun],
        **CHANGES[noun],
        "updatedAt": changed.json()["updatedAt"],
    }
    assert moment(changed.json()) > moment(seller.made[noun])
    assert changed.headers["etag"] == f'"{changed.json()["updatedAt"]}"'
    assert listed.json()["items"] == [changed.json()]
    assert listed.json()["totalCount"] == 1


async def test_a_stale_write_is_refused(seller: Seller) -> None:
    path, seen = seller.path("campaigns"), seller.made["campaigns"]["updatedAt"]
    await seller.client.patch(path, json={"name": "Mine"})

    in_body = await seller.client.patch(path, json={"name": "Also mine", "updatedAt": seen})
    in_header = await seller.client.delete(path, headers={"If-Match": f'"{seen}"'})

    problem(in_body, 409, "STALE_WRITE")
    problem(in_header, 409, "STALE_WRITE")


async def test_the_hierarchy_can_be_deleted_from_its_leaves(seller: Seller) -> None:
    for noun in ("ads", "adsets", "campaigns", "sellpages", "accounts"):
        assert (await seller.client.delete(seller.path(noun))).status_code == 204

        problem(await seller.client.get(seller.path(noun)), 404, CODES[noun])
        problem(await seller.client.patch(seller.path(noun), json={"name": "Back"}), 404, CODES[noun])
        problem(await seller.client.delete(seller.path(noun)), 404, CODES[noun])
        assert (await seller.client.get(f"{API}/{noun}")).json()["totalCount"] == 0


@pytest.mark.parametrize(
    ("noun", "child"),
    [("accounts", "campaigns"), ("sellpages", "campaigns"), ("campaigns", "adsets"), ("adsets", "ads")],
)
async def test_an_entity_with_children_is_not_deleted(noun: str, child: str, seller: Seller) -> None:
    for _ in range(4):
        await seller.make(child, name="One of many")

    refused = problem(await seller.client.delete(seller.path(noun)), 409, "STILL_IN_USE")

    assert '"One of many", "One of many", "One of many" and 2 more' in refused["detail"]
    assert (await seller.client.get(seller.path(noun))).status_code == 200


@for_each(
    ("noun", "field", "parent"),
    [
        ("campaigns", "adAccountId", "accounts"),
        ("campaigns", "sellpageId", "sellpages"),
        ("adsets", "campaignId", "campaigns"),
        ("ads", "adsetId", "adsets"),
    ],
)
async def test_a_parent_must_exist_and_belong_to_the_seller(
    noun: str, field: str, parent: str, seller: Seller, other_client: Client
) -> None:
    others = Seller(other_client, seller.id)
    for one in NOUNS[: NOUNS.index(noun)]:
        others.made[one] = await others.make(one)

    for foreign_id in (str(UNKNOWN_ID), others.id_of(parent)):
        body = {"name": "x", **seller.parents(noun), field: foreign_id}
        problem(await seller.client.post(f"{API}/{noun}", json=body), 404, CODES[parent])
        problem(await seller.client.patch(seller.path(noun), json={field: foreign_id}), 404, CODES[parent])

    assert (await seller.client.get(seller.path(noun))).json() == seller.made[noun]


async def test_concurrent_requests_leave_no_orphan(seller: Seller) -> None:
    for _ in range(10):
        campaign = await seller.make("campaigns")
        body = {"name": "x", "campaignId": campaign["id"]}

        async with asyncio.TaskGroup() as group:
            removed = group.create_task(seller.client.delete(f"{API}/campaigns/{campaign['id']}"))
            made = group.create_task(seller.client.post(f"{API}/adsets", json=body))

        assert (removed.result().status_code, made.result().status_code) in {(204, 404), (409, 201)}


async def test_a_campaign_can_move_to_another_sell_page(seller: Seller) -> None:
    page = await seller.make("sellpages")

    moved = await seller.client.patch(seller.path("campaigns"), json={"sellpageId": page["id"]})

    assert moved.json()["sellpageId"] == page["id"]
    assert (await seller.client.delete(seller.path("sellpages"))).status_code == 204


@pytest.mark.parametrize(
    ("noun", "field"),
    [("campaigns", "externalCampaignId"), ("adsets", "externalAdsetId"), ("ads", "externalAdId")],
)
async def test_an_external_id_is_unique(noun: str, field: str, seller: Seller) -> None:
    first = await seller.make(noun, **{field: "x-1"})

    again = await seller.client.post(
        f"{API}/{noun}", json={"name": "x", **seller.parents(noun), field: "x-1"}
    )
    changed = await seller.client.patch(seller.path(noun), json={field: "x-1"})

    assert error_fields(problem(again, 409, "EXTERNAL_ID_EXISTS")) == {field}
    assert error_fields(problem(changed, 409, "EXTERNAL_ID_EXISTS")) == {field}
    await seller.client.delete(f"{API}/{noun}/{first['id']}")
    assert (await seller.client.patch(seller.path(noun), json={field: "x-1"})).status_code == 200


async def test_another_spelling_of_an_external_id_is_the_same(seller: Seller) -> None:
    own = "01a1f5ab-06d2-7671-a182-9f98a2967ed1"
    first = await seller.make("campaigns", externalCampaignId=f" {own.upper()} ")

    body = {"name": "x", **seller.parents("campaigns"), "externalCampaignId": own.replace("-", "")}
    again = await seller.client.post(f"{API}/campaigns", json=body)

    assert first["externalCampaignId"] == own
    problem(again, 409, "EXTERNAL_ID_EXISTS")


@for_each(
    ("noun", "field", "value"),
    [
        ("accounts", "name", ""),
        ("accounts", "name", None),
        ("accounts", "platform", "tiktok"),
        ("accounts", "currency", "usd"),
        ("accounts", "timezone", "Mars/Base"),
        ("accounts", "isActive", "yes"),
        ("accounts", "credentials", ""),
        ("accounts", "credentials", " "),
        ("accounts", "credentials", "EAAB very secret"),
        ("accounts", "credentials", "EAAB…secret"),
        ("accounts", "externalId", ""),
        ("accounts", "credentialsExpiredAt", None),
        ("sellpages", "url", "javascript:alert(1)"),
        ("campaigns", "budget", -1),
        ("campaigns", "budget", 1.005),
        ("campaigns", "budget", 10**10),
        ("campaigns", "budget", "2500"),
        ("campaigns", "budget", None),
        ("campaigns", "budgetType", "WEEKLY"),
        ("campaigns", "status", "active"),
        ("campaigns", "adAccountId", "mine"),
        ("adsets", "status", "RUNNING"),
        ("ads", "externalAdId", "x" * 256),
        ("ads", "externalAdId", " "),
        ("ads", "spend", 1),
    ],
)
async def test_a_bad_field_is_refused_by_name(noun: str, field: str, value: object, seller: Seller) -> None:
    body = {"name": "x", **seller.parents(noun), field: value}

    made = await seller.client.post(f"{API}/{noun}", json=body)
    changed = await seller.client.patch(seller.path(noun), json={field: value})

    assert error_fields(problem(made, 400, "VALIDATION_FAILED")) == {field}
    assert error_fields(problem(changed, 400, "VALIDATION_FAILED")) == {field}
    assert (await seller.client.get(seller.path(noun))).json() == seller.made[noun]


async def test_lists_can_be_filtered_and_sorted(seller: Seller) -> None:
    other = await seller.make("campaigns", name="Zebra", status="PAUSED", budget=1)

    async def names(**query: str) -> list[str]:
        answer = await seller.client.get(f"{API}/campaigns", params=query)
        assert answer.status_code == 200, answer.text
        return [one["name"] for one in answer.json()["items"]]

    first = seller.made["campaigns"]["name"]
    assert await names(sort="budget") == ["Zebra", first]
    assert await names(sort="-name") == [first, "Zebra"] or await names(sort="name") == [first, "Zebra"]
    assert await names(status="PAUSED") == ["Zebra"]
    assert await names(search="zEb") == ["Zebra"]
    assert await names(adAccountId=seller.id_of("accounts"), pageSize="1", sort="budget") == ["Zebra"]
    assert await names(sellpageId=str(UNKNOWN_ID)) == []
    adset = await seller.make("adsets", campaignId=other["id"])
    listed = await seller.client.get(f"{API}/adsets", params={"campaignId": other["id"]})
    assert [one["id"] for one in listed.json()["items"]] == [adset["id"]]
    problem(await seller.client.get(f"{API}/campaigns", params={"color": "red"}), 400, "VALIDATION_FAILED")


# --- credentials


async def test_credentials_are_written_and_never_returned(seller: Seller, pool: Pool) -> None:
    made = await seller.make("accounts", platform="meta", credentials="EAAB-very-secret")
    read = await seller.client.get(f"{API}/accounts/{made['id']}")
    audit = await seller.client.get("/admin/audit", params={"noun": "ad_account"})

    sealed = await pool.fetchval("SELECT credentials FROM sync.ad_accounts WHERE credentials IS NOT NULL")
    assert made == read.json()
    assert made["hasCredentials"] is True
    assert "credentials" not in made
    assert b"EAAB" not in sealed
    assert SecretCipher((SEAL,)).decrypt(sealed, belongs_to=made["id"]) == "EAAB-very-secret"
    assert "EAAB" not in audit.text
    assert {"credentials": {"from": "(not shown)", "to": "(not shown)"}} in [
        entry["changes"] for entry in audit.json()["items"]
    ]


async def test_blanks_around_credentials_are_dropped(
    control: ControlPlane, seller: Seller, pool: Pool
) -> None:
    made = await seller.make("accounts", platform="meta", credentials=" EAAB-very-secret\n")

    sealed = await pool.fetchval("SELECT credentials FROM sync.ad_accounts WHERE credentials IS NOT NULL")
    assert control.app.state.sealer.decrypt(sealed, belongs_to=made["id"]) == "EAAB-very-secret"


async def test_new_credentials_clear_the_problem_of_the_old_ones(seller: Seller, pool: Pool) -> None:
    await pool.execute(
        "UPDATE sync.ad_accounts SET credentials_expired_at = now(), credentials_problem = 'Session has expired'"
    )
    path = seller.path("accounts")
    marked = (await seller.client.get(path)).json()

    renamed = (await seller.client.patch(path, json={"name": "Renamed"})).json()
    connected = (await seller.client.patch(path, json={"credentials": "EAAC"})).json()
    emptied = (await seller.client.patch(path, json={"credentials": None})).json()

    assert marked["credentialsExpiredAt"] is not None
    assert renamed["credentialsProblem"] == "Session has expired"
    assert (connected["credentialsExpiredAt"], connected["credentialsProblem"]) == (None, None)
    assert (connected["hasCredentials"], emptied["hasCredentials"]) == (True, False)
    assert moment(renamed) < moment(connected) < moment(emptied)


async def test_the_credentials_of_a_deleted_account_are_deleted(seller: Seller, pool: Pool) -> None:
    made = await seller.make("accounts", credentials="EAAB")

    await seller.client.delete(f"{API}/accounts/{made['id']}")

    assert await pool.fetchval("SELECT count(*) FROM sync.ad_accounts WHERE credentials IS NOT NULL") == 0


async def test_credentials_are_refused_without_a_secret(database_url: str, redis_url: str) -> None:
    async with (
        running_control(control_settings(database_url, redis_url)) as control,
        control.acting_as(Role.ADVERTISER) as client,
    ):
        refused = await client.post(f"{API}/accounts", json={"name": "x", "credentials": "EAAB"})
        listed = await client.get(f"{API}/accounts")

    assert "EAAB" not in problem(refused, 409, "CREDENTIALS_NOT_TAKEN")["detail"]
    assert listed.json()["totalCount"] == 0


@pytest.mark.parametrize(("field", "value"), [("platform", "meta"), ("currency", "EUR")])
async def test_an_account_with_campaigns_keeps_its_platform_and_currency(
    field: str, value: str, seller: Seller
) -> None:
    fresh = await seller.make("accounts")

    refused = await seller.client.patch(seller.path("accounts"), json={field: value})
    changed = await seller.client.patch(f"{API}/accounts/{fresh['id']}", json={field: value})

    problem(refused, 409, "STILL_IN_USE")
    assert changed.json()[field] == value


async def test_an_account_of_our_own_delivery_has_the_currency_of_our_prices(
    database_url: str, redis_url: str, pool: Pool
) -> None:
    settings = control_settings(database_url, redis_url, currency="EUR")
    async with (
        running_control(settings) as control,
        control.acting_as(Role.ADVERTISER) as client,
    ):
        seller = Seller(client, UNKNOWN_ID)
        for noun in ("accounts", "sellpages", "campaigns"):
            seller.made[noun] = await seller.make(
                noun, **({"platform": "adloom"} if noun == "accounts" else {})
            )
        path = seller.path("accounts")
        wrong = await client.post(
            f"{API}/accounts", json={"name": "x", "platform": "adloom", "currency": "USD"}
        )
        changed = await client.patch(path, json={"currency": "USD"})
        # As accounts were made before prices had a currency here.
        await pool.execute("UPDATE sync.ad_accounts SET currency = 'USD'")
        renamed = await client.patch(path, json={"name": "Ours"})
        mended = await client.patch(path, json={"currency": "EUR"})

    assert seller.made["accounts"]["currency"] == "EUR"
    assert error_fields(problem(wrong, 400, "VALIDATION_FAILED")) == {"currency"}
    assert error_fields(problem(changed, 400, "VALIDATION_FAILED")) == {"currency"}
    assert (renamed.json()["currency"], mended.json()["currency"]) == ("USD", "EUR")


@pytest.mark.parametrize("account", [{"currency": "EUR"}, {"platform": "meta"}])
async def test_nothing_moves_to_an_account_of_another_platform_or_currency(
    account: dict[str, str], seller: Seller
) -> None:
    other, alike = await seller.make("accounts", **account), await seller.make("accounts")
    campaigns = [await seller.make("campaigns", adAccountId=one["id"]) for one in (other, alike)]
    adsets = [await seller.make("adsets", campaignId=one["id"]) for one in campaigns]

    for noun, field, (elsewhere, there) in (
        ("ads", "adsetId", adsets),
        ("adsets", "campaignId", campaigns),
        ("campaigns", "adAccountId", (other, alike)),
    ):
        refused = await seller.client.patch(seller.path(noun), json={field: elsewhere["id"]})
        moved = await seller.client.patch(seller.path(noun), json={field: there["id"]})

        problem(refused, 409, "STILL_IN_USE")
        assert moved.json()[field] == there["id"]


# --- access


@pytest.mark.parametrize("noun", NOUNS)
async def test_an_admin_names_the_seller(noun: str, seller: Seller, admin: Client) -> None:
    path, named = seller.path(noun), {"sellerId": str(seller.id)}
    body = {"name": "Theirs", **seller.parents(noun)}

    for answer in (
        await admin.get(path),
        await admin.get(f"{API}/{noun}"),
        await admin.post(f"{API}/{noun}", json=body),
        await admin.patch(path, json={"name": "Renamed"}),
        await admin.delete(path),
    ):
        assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"sellerId"}
    assert (await admin.get(path, params=named)).json() == seller.made[noun]
    assert (await admin.get(f"{API}/{noun}", params=named)).json()["totalCount"] == 1
    made = await admin.made(f"{API}/{noun}", {**body, **named})
    assert made["sellerId"] == str(seller.id)
    assert (await seller.client.get(f"{API}/{noun}/{made['id']}")).json() == made
    assert (await admin.patch(path, json={"name": "Renamed", **named})).json()["name"] == "Renamed"
    assert (await admin.patch(path, json={"name": "Again"}, params=named)).json()["name"] == "Again"
    assert (await admin.delete(f"{API}/{noun}/{made['id']}", params=named)).status_code == 204
    other = {"sellerId": str(UNKNOWN_ID)}
    problem(await admin.get(path, params=other), 404, CODES[noun])
    both = await admin.patch(path, json={"name": "x", **other}, params=named)
    assert error_fields(problem(both, 400, "VALIDATION_FAILED")) == {"sellerId"}


async def test_an_admin_cannot_create_for_an_unknown_seller(admin: Client) -> None:
    made = await admin.post(f"{API}/sellpages", json={"name": "x", "sellerId": str(UNKNOWN_ID)})

    assert error_fields(problem(made, 400, "VALIDATION_FAILED")) == {"sellerId"}


async def test_an_advertiser_cannot_name_another_seller(seller: Seller, other_client: Client) -> None:
    named = {"sellerId": str(seller.id)}

    for answer in (
        await other_client.get(f"{API}/sellpages", params=named),
        await other_client.post(f"{API}/sellpages", json={"name": "x", **named}),
    ):
        problem(answer, 404, "SELLER_NOT_FOUND")
    assert (await seller.client.get(f"{API}/sellpages", params=named)).json()["totalCount"] == 1


async def test_a_viewer_reads_and_a_publisher_does_not(control: ControlPlane, seller: Seller) -> None:
    named = {"sellerId": str(seller.id)}
    async with control.acting_as(Role.VIEWER) as viewer:
        assert (await viewer.get(seller.path("ads"), params=named)).json() == seller.made["ads"]
        problem(await viewer.patch(seller.path("ads"), json={}, params=named), 403, "FORBIDDEN")
        problem(await viewer.post(f"{API}/ads", json={}), 403, "FORBIDDEN")
    async with control.acting_as(Role.PUBLISHER) as publisher:
        problem(await publisher.get(f"{API}/ads"), 403, "FORBIDDEN")
    async with control.client() as anonymous:
        problem(await anonymous.get(f"{API}/ads"), 401, "UNAUTHENTICATED")


async def test_a_change_is_in_the_audit_trail(seller: Seller, admin: Client) -> None:
    await seller.client.patch(seller.path("campaigns"), json={"budget": 10.5})
    await seller.client.delete(seller.path("ads"))

    own = (await seller.client.get("/admin/audit")).json()["items"]
    all_of_them = (await admin.get("/admin/audit")).json()["items"]

    deleted, changed, *made = [one for one in own if one["noun"] != "advertiser"]
    assert (deleted["noun"], deleted["action"]) == ("ad", "delete")
    assert (changed["noun"], changed["action"]) == ("synced_campaign", "update")
    assert changed["changes"] == {"budget": {"from": "2500.00", "to": "10.50"}}
    assert [one["noun"] for one in made] == ["ad", "adset", "synced_campaign", "sellpage", "ad_account"]
    assert {one["ownerId"] for one in own} == {str(seller.id)}
    # Accounts do not see from where it was done.
    assert [{**one, "network": None} for one in all_of_them] == own


@for_each(
    ("platform", "external_id", "status"),
    [
        ("meta", "act_1234", 201),
        ("meta", "1234", 201),
        ("meta", None, 201),
        ("meta", "../me", 400),
        ("meta", "act_12?x", 400),
        ("mock", "anything/at all", 201),
    ],
)
async def test_an_account_of_meta_is_named_by_its_number(
    seller: Seller, platform: str, external_id: str | None, status: int
) -> None:
    body = {"name": "An account", "platform": platform, "externalId": external_id}

    answer = await seller.client.post("/api/ads-manager/accounts", json=body)

    assert answer.status_code == status, answer.text
    if status == 400:
        assert [one["field"] for one in answer.json()["errors"]] == ["externalId"]
