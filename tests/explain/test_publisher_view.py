"""What a publisher is told about the ads on its placements: nothing of other accounts' money, dates and readers."""

import re
from uuid import UUID

from adloom.core.caller import Role
from adloom.core.clock import SystemClock
from adloom.core.money import Micros
from adloom.explain.publisher_view import show_name_to_publisher, show_to_publisher
from adloom.explain.reasons import OUTCOMES, REASONS, Reason
from adloom.runtime.postgres import Pool
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane
from tests.support.for_each import for_each
from tests.support.pages import write_shortlist

OTHERS_FIELDS = re.compile(
    r"budget\w*Paisa|bidAmount|startsAt|endsAt|\w+Cap\b|pacing\w+|schedule\w+|blockedSites|displayOrder|weight"
)


@for_each("reason", [*REASONS.values(), *OUTCOMES.values()])
def test_no_reason_tells_a_publisher_what_others_have_set(reason: Reason) -> None:
    shown = show_to_publisher(reason)

    assert "{" not in shown.sentence, "a figure or a date"
    assert shown.change is None or not OTHERS_FIELDS.search(shown.change)


def test_budgets_caps_and_pace_are_one_reason_for_a_publisher() -> None:
    names = {"daily_budget", "total_budget", "advertiser_budget", "pacing", "impression_cap", "click_cap"}

    assert {show_to_publisher(REASONS[name]).name for name in names} == {"caps_and_budgets"}
    assert {show_name_to_publisher(name) for name in ("budget", "pacing")} == {"caps_and_budgets"}
    assert [show_name_to_publisher(name) for name in (None, "rejected")] == [None, "rejected"]


async def an_ad(admin: Client, placement: Json, payer: Json, **fields: object) -> Json:
    campaign = await admin.make_campaign(advertiserId=payer["id"], bidAmount=7.77, **fields)
    banner = await admin.make_banner(advertiserId=payer["id"])
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
    return campaign


async def test_a_publisher_sees_no_budget_date_or_target_of_an_advertiser(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    publisher, payer = await admin.make_publisher(), await admin.make_advertiser(dailyBudgetPaisa=88_888)
    placement = await admin.make_placement(publisherId=publisher["id"])
    spent = await an_ad(admin, placement, payer, budgetDailyPaisa=4_321)
    later = await an_ad(admin, placement, payer, startsAt="2027-03-25T00:00:00Z")
    abroad = await an_ad(admin, placement, payer)
    await admin.make_rule(abroad, ruleType="country", operator="in", value=["NZ"])
    paused = await an_ad(admin, placement, payer)
    await admin.patch(f"/admin/campaigns/{paused['id']}/pause")
    await keep(pool, spent, a_busy_state(charged=2, held=0, leased=0, daily_budget=Micros(20_000)))
    path = f"/banners/explain/{placement['slug']}"

    in_full = (await admin.get(path, params={"country": "FR"})).json()
    async with control.acting_as(Role.PUBLISHER, UUID(publisher["id"])) as client:
        answer = await client.get(path, params={"country": "FR"})

    full = {one["campaignId"]: one["removedBy"] for one in in_full["candidates"]}
    shown = {one["campaignId"]: one for one in answer.json()["candidates"]}
    assert full[spent["id"]] == "daily_budget"
    assert {name: shown[one["id"]]["removedBy"] for name, one in
            {"spent": spent, "later": later, "abroad": abroad, "paused": paused}.items()} == {
        "spent": "caps_and_budgets", "later": "campaign_dates", "abroad": "targeting:country", "paused": "campaign_paused",
    }  # fmt: skip
    assert answer.json()["removed"]["caps_and_budgets"] == 1
    assert all(one.get("change") is None for one in shown.values())
    secrets = ("4321", "43.21", "88888", "7.77", "2027", "NZ", "budgetDailyPaisa", "daily budget")
    assert [one for one in secrets if one in answer.text] == []


async def test_a_publisher_sees_neither_bids_nor_prices_of_a_contextual_slot(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    publisher, payer = await admin.make_publisher(), await admin.make_advertiser()
    site = await admin.make_site(approvalMode="automatic", publisherId=publisher["id"])
    await admin.make_placement(
        siteId=site["id"], publisherId=publisher["id"], delivery="contextual", slug="story"
    )
    url = f"https://{site['domain']}/a"
    page = {"url": url, "categories": [{"id": "483", "confidence": 1}]}
    known = (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).json()
    campaign = await admin.make_campaign(advertiserId=payer["id"], bidAmount=5, categories=["483"])
    banner = await admin.make_banner(advertiserId=payer["id"])
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
    listed: dict[str, object] = {
        "banner_id": banner["id"],
        "campaign_id": campaign["id"],
        "advertiser_id": payer["id"],
        "category": "483",
        "category_score": 0.25,
        "cpm": 5_000_000,
    }
    await write_shortlist(pool, site["id"], known["url"], {"story": [listed]}, at=SystemClock().now())
    body = {"slot": "story", "url": url}
    path = f"/admin/sites/{site['id']}/pages/{known['id']}"

    in_full = (await admin.post("/v1/explain", json=body)).json()
    slots = (await admin.get(path)).json()["slots"]
    async with control.acting_as(Role.PUBLISHER, UUID(publisher["id"])) as client:
        answer = (await client.post("/v1/explain", json=body)).json()
        slots_shown = (await client.get(path)).json()["slots"]
        market_shown = (await client.get(f"/admin/sites/{site['id']}/market")).json()

    assert [slots[0]["candidates"][0]["maxCpm"], slots_shown[0]["candidates"][0]["maxCpm"]] == [5.0, None]
    assert [one["highestCpm"] for one in market_shown["categories"]] == [None]

    [candidate], [full] = answer["candidates"], in_full["candidates"]
    assert (full["outcome"], candidate["outcome"]) == ("won", "won")
    assert all(full[name] is not None for name in ("maxCpm", "score", "sampledCtr", "priceCpm"))
    assert [candidate.get(name) for name in ("maxCpm", "score", "sampledCtr", "priceCpm")] == [None] * 4
    assert (answer["winner"], answer.get("priceCpm")) == (banner["id"], None)
