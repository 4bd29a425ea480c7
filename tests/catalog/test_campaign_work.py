"""Copies of campaigns, changes of many at once, and budgets that could never be spent."""

from typing import Any

import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import Json, campaign_body
from tests.support.control import Client, ControlPlane, problem
from tests.support.for_each import for_each

UNKNOWN = "01890000-0000-7000-8000-000000000000"


async def read(client: Client, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def duplicate(client: Client, campaign: Json, **body: object) -> Json:
    answer = await client.post(f"/admin/campaigns/{campaign['id']}/duplicate", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def change_many(client: Client, campaigns: list[Json], action: str, **change: object) -> list[Json]:
    body = {
        "ids": [one["id"] for one in campaigns],
        "action": action,
        **({"change": change} if change else {}),
    }
    answer = await client.post("/admin/campaigns/bulk", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def a_whole_campaign(admin: Client, **fields: object) -> tuple[Json, Json, Json]:
    placement, banner = await admin.make_placement(), await admin.make_banner()
    campaign = await admin.make_campaign(
        bidAmount=2, budgetDailyPaisa=1_000, labels=["spring"], notes="Ask Ann", **fields
    )
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner, weight=7)
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    await admin.make_rule(campaign)
    return campaign, placement, banner


async def test_a_copy_is_a_draft_with_all_that_hangs_on_the_original(admin: Client) -> None:
    campaign, placement, banner = await a_whole_campaign(admin)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    copy = await duplicate(admin, campaign)

    assert copy["id"] != campaign["id"]
    assert (copy["name"], copy["status"]) == (f"{campaign['name']} (copy)", "draft")
    same = ("bidAmount", "budgetDailyPaisa", "labels", "notes", "timezone", "advertiserId")
    assert [copy[field] for field in same] == [campaign[field] for field in same]
    [shown] = (await read(admin, f"/admin/assignments?campaignId={copy['id']}"))["items"]
    assert (shown["placementId"], shown["bannerId"], shown["weight"]) == (placement["id"], banner["id"], 7)
    [creative] = (await read(admin, f"/admin/campaigns/{copy['id']}/creatives"))["items"]
    assert creative["bannerId"] == banner["id"]
    [rule] = (await read(admin, f"/admin/targeting-rules?campaignId={copy['id']}"))["items"]
    assert (rule["ruleType"], rule["value"]) == ("country", ["DE"])
    assert (await read(admin, f"/admin/targeting-rules?campaignId={campaign['id']}"))["totalCount"] == 1


async def test_a_copy_leaves_out_dates_that_are_over_and_takes_others(admin: Client) -> None:
    past = await admin.make_campaign(startsAt="2026-10-01T00:00:00Z", endsAt="2026-10-31T00:00:00Z")
    coming = await admin.make_campaign(startsAt="2026-12-01T00:00:00Z", endsAt="2026-12-31T00:00:00Z")

    copies = [
        await duplicate(admin, past),
        await duplicate(admin, coming),
        await duplicate(admin, past, name="Next year", startsAt="2027-10-01T00:00:00Z"),
    ]

    assert [(one["startsAt"], one["endsAt"]) for one in copies] == [
        (None, None),
        ("2026-12-01T00:00:00Z", "2026-12-31T00:00:00Z"),
        ("2027-10-01T00:00:00Z", None),
    ]
    assert copies[2]["name"] == "Next year"


async def test_the_copy_of_an_account_asks_anew_and_keeps_its_bounds(
    control: ControlPlane, admin: Client
) -> None:
    account = SystemIds().make()
    async with control.acting_as(Role.ADVERTISER, account) as advertiser:
        banner = await advertiser.make_banner()
        campaign = await advertiser.make_campaign()
        gone, wanted = await admin.make_placement(), await admin.make_placement()
        for placement in (gone, wanted):
            await admin.link(campaign, placement)
            await admin.assign(campaign, placement, banner, displayOrder=0)
        await admin.patch(f"/admin/campaigns/{campaign['id']}", json={"priority": 999})
        await admin.patch(f"/admin/placements/{gone['id']}", json={"isActive": False})

        copy = await duplicate(advertiser, campaign)
        rows = (await read(advertiser, f"/admin/assignments?campaignId={copy['id']}"))["items"]

    assert copy["priority"] == 100
    assert [(row["placementId"], row["linkState"], row["displayOrder"]) for row in rows] == [
        (wanted["id"], "requested", 100)
    ]


async def test_a_copy_keeps_what_a_publisher_refused(admin: Client) -> None:
    campaign, placement, banner = await a_whole_campaign(admin)
    at = f"/admin/placements/{placement['id']}/links/{campaign['id']}"
    await admin.post(f"{at}/banners/{banner['id']}", json={"decision": "refuse", "reason": "Too loud"})

    copy = await duplicate(admin, campaign)

    [row] = (await read(admin, f"/admin/assignments?campaignId={copy['id']}"))["items"]
    assert row["isRefused"] is True


async def test_the_copy_of_an_account_is_refused_where_the_original_was(
    control: ControlPlane, admin: Client
) -> None:
    async with control.acting_as(Role.ADVERTISER, SystemIds().make()) as advertiser:
        campaign = await advertiser.make_campaign()
        for decision in ("refuse", "accept"):
            placement = await admin.make_placement(isOpen=True)
            await advertiser.link(campaign, placement)
            at = f"/admin/placements/{placement['id']}/links/{campaign['id']}"
            await admin.post(at, json={"decision": decision, "reason": decision})

        copy = await duplicate(advertiser, campaign)
        links = (await read(advertiser, f"/admin/campaigns/{copy['id']}/placements"))["items"]

    assert {(one["state"], one["reason"]) for one in links} == {("refused", "refuse"), ("accepted", None)}


async def test_many_are_paused_and_resumed_each_for_itself(admin: Client) -> None:
    running, draft = await admin.make_campaign(), await admin.make_campaign()
    await admin.patch(f"/admin/campaigns/{running['id']}/activate")

    paused = await change_many(admin, [running, draft], "pause")
    again = await change_many(admin, [running, {"id": UNKNOWN}], "pause")
    resumed = await change_many(admin, [running, draft], "resume")

    assert [one["isDone"] for one in paused] == [True, False]
    assert paused[0]["campaign"]["status"] == "paused"
    assert paused[1]["campaign"] is None
    assert paused[1]["error"]["errorCode"] == "CAMPAIGN_INVALID_TRANSITION"
    assert [one["isDone"] for one in again] == [True, False]
    assert again[1]["error"]["errorCode"] == "CAMPAIGN_NOT_FOUND"
    assert [one["isDone"] for one in resumed] == [True, False]
    assert "Only one that is paused" in resumed[1]["error"]["message"]


async def test_a_change_of_many_is_whole_or_nothing_for_each(admin: Client) -> None:
    rich = await admin.make_campaign(bidType="cpc", bidAmount=0.1, budgetDailyPaisa=1_000)
    poor = await admin.make_campaign(bidType="cpc", bidAmount=0.1, budgetDailyPaisa=20)

    results = await change_many(
        admin, [rich, poor], "change", bidAmount=0.5, endsAt="2026-12-31T00:00:00Z", labels=["winter"]
    )

    assert [one["isDone"] for one in results] == [True, False]
    assert results[1]["error"]["errors"][0]["field"] == "budgetDailyPaisa"
    found = [await read(admin, f"/admin/campaigns/{one['id']}") for one in (rich, poor)]
    assert (found[0]["bidAmount"], found[0]["endsAt"], found[0]["labels"]) == (
        0.5,
        "2026-12-31T00:00:00Z",
        ["winter"],
    )
    assert found[1] == poor


@for_each(
    "body",
    [
        {"ids": [], "action": "pause"},
        {"ids": [UNKNOWN] * 101, "action": "pause"},
        {"ids": [UNKNOWN], "action": "delete"},
        {"ids": [UNKNOWN], "action": "change"},
        {"ids": [UNKNOWN], "action": "change", "change": {}},
        {"ids": [UNKNOWN], "action": "change", "change": {"name": "Same"}},
        {"ids": [UNKNOWN], "action": "pause", "change": {"bidAmount": 1}},
    ],
)
async def test_a_change_of_many_says_what_it_wants(admin: Client, body: Json) -> None:
    problem(await admin.post("/admin/campaigns/bulk", json=body), 400, "VALIDATION_FAILED")


async def test_the_labels_in_use_are_listed_for_those_who_own_them(
    control: ControlPlane, admin: Client
) -> None:
    await admin.make_campaign(labels=["spring", " own ", "spring"])
    await admin.make_campaign(labels=["spring"])
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        await advertiser.make_campaign(labels=["mine"])
        own = (await read(advertiser, "/admin/campaigns/labels"))["items"]

    listed = (await read(admin, "/admin/campaigns/labels"))["items"]

    assert [(one["label"], one["campaigns"]) for one in listed] == [("spring", 2), ("mine", 1), ("own", 1)]
    assert [one["label"] for one in own] == ["mine"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"bidType": "cpc", "bidAmount": 0.5, "budgetDailyPaisa": 30}, "budgetDailyPaisa"),
        ({"bidType": "cpc", "bidAmount": 0.5, "budgetTotalPaisa": 49}, "budgetTotalPaisa"),
        ({"bidType": "cpm", "bidAmount": 50, "budgetDailyPaisa": 4}, "budgetDailyPaisa"),
        ({"bidAmount": 1, "budgetDailyPaisa": 0}, "budgetDailyPaisa"),
    ],
)
async def test_a_budget_under_one_bid_is_refused(admin: Client, fields: Json, field: str) -> None:
    body = problem(
        await admin.post("/admin/campaigns", json=campaign_body(**fields)), 400, "VALIDATION_FAILED"
    )

    assert body["errors"][0]["field"] == field
    assert "does not pay for one" in body["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"bidType": "cpc", "bidAmount": 0.5, "budgetDailyPaisa": 50},
        {"bidType": "cpm", "bidAmount": 50, "budgetDailyPaisa": 5},
        {"budgetDailyPaisa": 0},
        {"bidAmount": 0, "budgetDailyPaisa": 0},
    ],
)
async def test_a_budget_of_one_bid_is_enough(admin: Client, fields: Json) -> None:
    await admin.make_campaign(**fields)


async def test_an_older_campaign_with_such_a_budget_can_get_another_name(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(bidType="cpc", bidAmount=0.5)
    await pool.execute("UPDATE campaigns SET budget_daily_paisa = 30")
    path = f"/admin/campaigns/{campaign['id']}"

    named = await admin.patch(path, json={"name": "Renamed"})
    priced = await admin.patch(path, json={"bidAmount": 0.4})

    assert named.status_code == 200, named.text
    problem(priced, 400, "VALIDATION_FAILED")
