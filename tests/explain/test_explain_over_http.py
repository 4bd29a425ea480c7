"""`GET /banners/explain/{slug}` on the control plane: for any visitor, limited to what an account may see."""

from uuid import UUID

import msgspec
import pytest

from adloom.budgets.bid_model import BidProgress
from adloom.core.caller import Role
from adloom.core.clock import SystemClock
from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.pace_control import PaceState
from adloom.serving.background.index_refresh import IndexRefresher
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.documents import Importer, a_large_market
from tests.support.pages import write_shortlist


async def an_ad(admin: Client, placement: Json, **campaign_fields: object) -> tuple[Json, Json]:
    """Make an active campaign that shows a banner there."""
    owner = {"advertiserId": campaign_fields["advertiserId"]} if campaign_fields else {}
    campaign = await admin.make_campaign(**campaign_fields)
    banner = await admin.make_banner(**owner)
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    return campaign, banner


async def test_every_candidate_is_explained_for_the_visitor_in_the_headers(admin: Client) -> None:
    placement = await admin.make_placement()
    campaign, banner = await an_ad(admin, placement)
    _, plain = await an_ad(admin, placement)
    await admin.make_rule(campaign, ruleType="country", operator="in", value=["DE"])

    answer = await admin.get(f"/banners/explain/{placement['slug']}", headers={"x-country-code": "FR"})

    assert answer.status_code == 200, answer.text
    found = {one["adId"]: one for one in answer.json()["candidates"]}
    assert found[plain["id"]]["outcome"] == "won"
    assert found[plain["id"]].get("removedBy") is None
    assert found[banner["id"]]["outcome"] == "removed"
    assert found[banner["id"]]["removedBy"] == "targeting:country"
    assert "DE" in found[banner["id"]]["reason"]
    assert answer.json()["winner"] == plain["id"]
    assert answer.json()["context"]["country"] == "FR"
    # The token belongs to the caller, not to the visitor.
    assert answer.json()["context"]["loggedIn"] is False


async def test_parameters_describe_the_visitor(admin: Client) -> None:
    placement = await admin.make_placement()
    campaign, banner = await an_ad(admin, placement)
    await admin.make_rule(campaign, ruleType="country", operator="in", value=["DE"])
    path = f"/banners/explain/{placement['slug']}"

    assert (await admin.get(path, params={"country": "DE"})).json()["winner"] == banner["id"]
    refused = problem(await admin.get(path, params={"device": "toaster"}), 400, "VALIDATION_FAILED")
    assert error_fields(refused) == {"device"}


async def test_an_unknown_placement_is_not_found_and_a_token_is_required(
    admin: Client, control: ControlPlane
) -> None:
    problem(await admin.get("/banners/explain/nowhere"), 404, "PLACEMENT_NOT_FOUND")
    async with control.client() as anonymous:
        problem(await anonymous.get("/banners/explain/nowhere"), 401, "UNAUTHENTICATED")


async def test_an_advertiser_sees_its_own_candidates_only(admin: Client, control: ControlPlane) -> None:
    placement = await admin.make_placement()
    advertiser = await admin.make_advertiser()
    await an_ad(admin, placement)
    _, own = await an_ad(admin, placement, advertiserId=advertiser["id"])

    async with control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as client:
        answer = (await client.get(f"/banners/explain/{placement['slug']}")).json()

    assert [one["adId"] for one in answer["candidates"]] == [own["id"]]
    assert answer["candidates"][0]["outcome"] == "lost"
    assert (answer["winner"], answer["winners"]) == (None, [])


async def test_a_publisher_sees_its_own_placements_only(admin: Client, control: ControlPlane) -> None:
    publisher = await admin.make_publisher()
    own = await admin.make_placement(publisherId=publisher["id"])
    foreign = await admin.make_placement()

    async with control.acting_as(Role.PUBLISHER, UUID(publisher["id"])) as client:
        assert (await client.get(f"/banners/explain/{own['slug']}")).status_code == 200
        problem(await client.get(f"/banners/explain/{foreign['slug']}"), 404, "PLACEMENT_NOT_FOUND")


@pytest.mark.parametrize("domain", ["rival.example.com", "shop.rival.example.com"])
async def test_a_site_that_an_advertiser_blocks_does_not_get_its_ads(admin: Client, domain: str) -> None:
    blocked = {"name": "A", "blockedSites": ["rival.example.com"]}
    payer = (await admin.post("/admin/advertisers", json=blocked)).json()
    site = (await admin.post("/admin/sites", json={"domain": domain, "name": "Rival"})).json()
    placement = await admin.make_placement(siteId=site["id"])
    elsewhere = await admin.make_placement(siteId=(await admin.make_site())["id"])
    _, banner = await an_ad(admin, placement, advertiserId=payer["id"])
    _, other = await an_ad(admin, elsewhere, advertiserId=payer["id"])
    path = f"/banners/explain/{placement['slug']}"

    [candidate] = (await admin.get(path)).json()["candidates"]
    assert (candidate["outcome"], candidate["removedBy"]) == ("removed", "site_blocked")
    assert (await admin.get(f"/banners/explain/{elsewhere['slug']}")).json()["winner"] == other["id"]

    await admin.patch(f"/admin/sites/{site['id']}", json={"domain": "friend.example.com"})
    assert (await admin.get(path)).json()["winner"] == banner["id"]


async def test_a_site_that_warms_up_shows_nothing_in_any_placement(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    site = await admin.make_site()
    direct = await admin.make_placement(siteId=site["id"])
    auctioned = await admin.make_placement(siteId=site["id"], delivery="auction")
    _, banner = await an_ad(admin, direct)
    payer = await admin.make_advertiser()
    await an_ad(admin, auctioned, advertiserId=payer["id"], bidAmount=5)
    body = {"userId": str(UNKNOWN_ID), "placement": auctioned["slug"]}
    questions = (
        lambda: admin.get(f"/banners/explain/{direct['slug']}"),
        lambda: admin.post("/api/v1/ads/explain", json=body),
    )
    newest = "SELECT noun FROM catalog_changes WHERE version = (SELECT version FROM catalog_version)"

    await admin.patch(f"/admin/sites/{site['id']}", json={"pacing": {"warmup": True}})

    assert {row["noun"] for row in await pool.fetch(newest)} == {"site", "placement"}
    refresher = IndexRefresher(pool, valkey, SystemClock())
    await refresher.refresh()
    assert [placement.blocks for placement in refresher.current.by_key.values()] == [(), ()]
    for ask in questions:
        [candidate] = (await ask()).json()["candidates"]
        assert (candidate["outcome"], candidate["removedBy"]) == ("removed", "warmup")

    await admin.patch(f"/admin/sites/{site['id']}", json={"pacing": {"warmup": False}})
    assert (await questions[0]()).json()["winner"] == banner["id"]
    await refresher.refresh()
    assert all(placement.blocks for placement in refresher.current.by_key.values())


async def test_removed_candidates_are_counted_by_step(admin: Client) -> None:
    placement = await admin.make_placement()
    campaign, _ = await an_ad(admin, placement)
    await an_ad(admin, placement)
    await admin.make_rule(campaign, ruleType="country", operator="in", value=["DE"])

    answer = (await admin.get(f"/banners/explain/{placement['slug']}", params={"country": "FR"})).json()

    assert answer["removed"] == {"targeting:country": 1}


async def test_a_large_market_is_counted_in_full_although_only_1000_candidates_are_sent(
    admin: Client, control: ControlPlane
) -> None:
    await Importer(admin).imported(a_large_market(1_050))
    body = {"userId": str(UNKNOWN_ID), "placement": "hero"}

    answer = (await admin.post("/api/v1/ads/explain", json=body)).json()
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        seen_by_advertiser = (await advertiser.post("/api/v1/ads/explain", json=body)).json()

    outcomes = [one["outcome"] for one in answer["candidates"]]
    assert (len(outcomes), outcomes[:3]) == (1_000, ["won", "lost", "removed"])
    assert (answer["candidateCount"], answer["removed"]) == (1_050, {"campaign_paused": 1_048})
    # An advertiser sees neither the removed candidates of others nor how many there are.
    assert (seen_by_advertiser["candidateCount"], seen_by_advertiser["removed"]) == (2, {})


async def test_the_throttle_of_pacing_and_the_multiplier_of_bids_are_in_an_explanation(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    """The throttle is of campaigns that one may know: an advertiser's own, and none for a publisher."""
    publisher, payer = await admin.make_publisher(), await admin.make_advertiser()
    site = await admin.make_site(approvalMode="automatic", publisherId=publisher["id"])
    await admin.make_placement(
        siteId=site["id"], publisherId=publisher["id"], delivery="contextual", slug="story"
    )
    url = f"https://{site['domain']}/a"
    page = {"url": url, "categories": [{"id": "483", "confidence": 1}]}
    assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    campaign = await admin.make_campaign(
        advertiserId=payer["id"], budgetDailyPaisa=10_000, bidAmount=5, categories=["483"]
    )
    banner = await admin.make_banner(advertiserId=payer["id"])
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
    state = a_busy_state(charged=1, held=0, leased=5, daily_budget=Micros(100_000_000))
    bids = BidProgress(day=state.day, multiplier=0.5)
    await keep(pool, campaign, msgspec.structs.replace(state, pace=PaceState(throttle=0.4), bids=bids))

    body = {"slot": "story", "url": url}
    answer = await admin.post("/v1/explain", json=body)
    told = list[float | None]()
    for role, account in (
        (Role.ADVERTISER, UUID(payer["id"])),
        (Role.ADVERTISER, None),
        (Role.PUBLISHER, UUID(publisher["id"])),
    ):
        async with control.acting_as(role, account) as client:
            told.append((await client.post("/v1/explain", json=body)).json()["throttle"])

    assert answer.status_code == 200, answer.text
    explained = answer.json()
    assert (explained["throttle"], told) == (0.4, [0.4, 0.0, None])
    [candidate] = explained["candidates"]
    assert (candidate["outcome"], candidate["maxCpm"]) == ("won", 2.5)


async def test_what_is_not_on_the_shortlist_of_a_slot_does_not_win_it(admin: Client, pool: Pool) -> None:
    site = await admin.make_site(approvalMode="automatic")
    await admin.make_placement(siteId=site["id"], delivery="contextual", slug="news")
    page = {"url": f"https://{site['domain']}/a", "categories": [{"id": "483", "confidence": 1}]}
    assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    made: list[tuple[str, str]] = []
    for bid in (5, 4):
        campaign, banner = (
            await admin.make_campaign(bidAmount=bid, categories=["483"]),
            await admin.make_banner(),
        )
        await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
        assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
        made.append((banner["id"], campaign["id"]))
    listed: dict[str, object] = {
        "banner_id": made[1][0],
        "campaign_id": made[1][1],
        "advertiser_id": None,
        "category": "483",
        "category_score": 0.25,
        "cpm": 3_000_000,
    }
    await write_shortlist(pool, site["id"], f"{site['domain']}/a", {"news": [listed]}, at=SystemClock().now())

    answer = await admin.post("/v1/explain", json={"slot": "news", "url": page["url"]})

    first, second = answer.json()["candidates"]
    assert (first["bannerId"], first["outcome"], first["categoryScore"]) == (made[1][0], "won", 0.25)
    assert (second["bannerId"], second["removedBy"]) == (made[0][0], "not_shortlisted")
    assert (first["maxCpm"], first["priceCpm"]) == (4.0, 0.5)


async def test_a_campaign_that_has_reached_a_cap_does_not_win_a_contextual_slot(
    admin: Client, pool: Pool
) -> None:
    site = await admin.make_site(approvalMode="automatic")
    await admin.make_placement(siteId=site["id"], delivery="contextual", slug="news")
    page = {"url": f"https://{site['domain']}/a", "categories": [{"id": "483", "confidence": 1}]}
    assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    campaign = await admin.make_campaign(bidAmount=5, categories=["483"], impressionCap=2)
    banner = await admin.make_banner()
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
    await pool.execute(
        """
        INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions)
        SELECT date_trunc('hour', now()), banners.id, placements.id, campaigns.id, 1
          FROM banners, placements, campaigns
        """
    )

    async def explain() -> Json:
        answer = await admin.post("/v1/explain", json={"slot": "news", "url": page["url"]})
        [candidate] = answer.json()["candidates"]
        return candidate

    before = await explain()
    await pool.execute("UPDATE events.event_counts SET impressions = 2")
    after = await explain()

    assert before["outcome"] == "won"
    assert (after["outcome"], after["removedBy"]) == ("removed", "budget")
