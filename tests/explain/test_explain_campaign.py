"""`GET /admin/campaigns/{id}/delivery`: every step between a campaign and a visitor, and the auctions of the last hour."""

from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from adloom.budgets.bid_model import BidProgress
from adloom.core.caller import Role
from adloom.core.ids import BannerId, CampaignId
from adloom.core.money import Micros
from adloom.events.log.auction_bids import LOST, REMOVED
from adloom.events.log.event import AuctionEntry, RemovedCandidates
from adloom.runtime.postgres import Pool
from tests.events.builders import a_bid, a_win, an_auction
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.auctions import apply_auctions
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, problem


class ShownCampaign:
    """A campaign with one banner on one placement."""

    def __init__(self, campaign: Json, placement: Json, banner: Json) -> None:
        self.campaign = campaign
        self.placement = placement
        self.banner = banner

    def seen(self, **fields: Any) -> Json:
        return seen(self.banner, self.placement, self.campaign, **{"at": NOON, **fields})


async def make_shown_campaign(
    admin: Client, *, placement: Json | None = None, is_active: bool = True, **fields: Any
) -> ShownCampaign:
    placement = placement or await admin.make_placement()
    campaign = await admin.make_campaign(**fields)
    banner = await admin.make_banner()
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    if is_active:
        await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    return ShownCampaign(campaign, placement, banner)


async def delivery(client: Client, campaign: Json) -> Json:
    answer = await client.get(f"/admin/campaigns/{campaign['id']}/delivery")
    assert answer.status_code == 200, answer.text
    return answer.json()


def states(found: Json) -> dict[str, str]:
    return {check["name"]: check["state"] for check in found["checks"]}


def check(found: Json, name: str) -> Json:
    return next(one for one in found["checks"] if one["name"] == name)


async def test_a_campaign_with_impressions_delivers(admin: Client, pool: Pool) -> None:
    shown = await make_shown_campaign(admin)
    await EventWriter(pool).write(
        shown.seen(), shown.seen(), clicked(shown.banner, shown.placement, shown.campaign, at=NOON)
    )

    found = await delivery(admin, shown.campaign)

    assert set(states(found).values()) == {"ok"}
    assert (found["verdict"], found["impressions"], found["clicks"]) == ("It delivers.", 2, 1)
    assert found["since"] == "2026-11-15T11:00:00Z"
    assert check(found, "requests")["of"] == 2


async def test_a_draft_gets_a_verdict_and_a_remedy(admin: Client) -> None:
    shown = await make_shown_campaign(admin, is_active=False)

    found = await delivery(admin, shown.campaign)

    assert states(found)["status"] == "stops"
    assert found["verdict"] == "The campaign is still a draft."
    assert check(found, "status")["change"] == "Activate or schedule the campaign."


async def test_the_verdict_names_a_missing_placement(admin: Client) -> None:
    campaign = await admin.make_campaign()
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    found = await delivery(admin, campaign)

    assert found["verdict"] == "No banner of the campaign is assigned to a placement."
    assert states(found)["requests"] == "ok"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"startsAt": "2026-11-20T00:00:00Z"}, "dates"),
        ({"endsAt": "2026-11-15T12:00:00Z"}, "dates"),
        ({"impressionCap": 1}, "caps"),
    ],
)
async def test_dates_and_caps_stop_a_campaign(admin: Client, pool: Pool, fields: Json, name: str) -> None:
    shown = await make_shown_campaign(admin)
    await admin.patch(f"/admin/campaigns/{shown.campaign['id']}", json=fields)
    await EventWriter(pool).write(shown.seen())

    assert states(await delivery(admin, shown.campaign))[name] == "stops"


async def test_an_inactive_banner_and_an_expired_banner_are_named(admin: Client) -> None:
    shown = await make_shown_campaign(admin)
    await admin.patch(
        f"/admin/banners/{shown.banner['id']}/schedule", json={"expiresAt": "2026-11-15T10:00:00Z"}
    )
    assert states(await delivery(admin, shown.campaign))["schedule"] == "stops"

    await admin.patch(f"/admin/banners/{shown.banner['id']}/deactivate")

    found = await delivery(admin, shown.campaign)
    assert check(found, "placements")["sentence"] == "The banner is switched off."
    assert (check(found, "placements")["passed"], check(found, "placements")["of"]) == (0, 1)


async def test_rules_that_match_no_visitor_stop_a_campaign(admin: Client, pool: Pool) -> None:
    shown = await make_shown_campaign(admin)
    await admin.make_rule(shown.campaign, ruleType="country", operator="in", value=["DE"])
    other = await make_shown_campaign(admin, placement=shown.placement)
    await EventWriter(pool).write(other.seen(country="FR"), other.seen(country="FR"))

    found = await delivery(admin, shown.campaign)

    assert (check(found, "targeting")["state"], check(found, "targeting")["of"]) == ("stops", 2)


async def test_rules_that_match_some_visitors_limit_a_campaign(admin: Client, pool: Pool) -> None:
    shown = await make_shown_campaign(admin)
    await admin.make_rule(shown.campaign, ruleType="country", operator="in", value=["DE"])
    other = await make_shown_campaign(admin, placement=shown.placement)
    await EventWriter(pool).write(other.seen(country="FR"), other.seen(country="DE"))

    found = await delivery(admin, shown.campaign)

    assert check(found, "targeting") | {"sentence": "", "change": ""} == {
        "name": "targeting", "state": "limits", "passed": 1, "of": 2, "sentence": "", "change": "",
    }  # fmt: skip
    assert check(found, "rivals")["state"] == "limits"


async def test_the_verdict_names_placements_without_impressions(admin: Client, pool: Pool) -> None:
    shown = await make_shown_campaign(admin)
    await EventWriter(pool).write(shown.seen(at=NOON.replace(hour=10)))

    found = await delivery(admin, shown.campaign)

    assert found["verdict"] == "Nobody has looked at its placements."


def a_lost_auction(
    shown: ShownCampaign, *, outcome: int = LOST, removed: tuple[RemovedCandidates, ...] = ()
) -> AuctionEntry:
    winner = CampaignId(uuid4())
    bids = a_bid(campaign=winner) + a_bid(
        banner=BannerId(UUID(shown.banner["id"])),
        campaign=CampaignId(UUID(shown.campaign["id"])),
        bid=7_000_000,
        ecpm=7_000_000,
        outcome=outcome,
    )
    return an_auction(uuid4(), winner=a_win(campaign_id=winner), bids=bids, removed=removed)


async def test_auctions_are_counted_by_outcome(admin: Client, pool: Pool) -> None:
    placement = await admin.make_placement(delivery="auction", placementType="feed")
    shown = await make_shown_campaign(admin, placement=placement, bidAmount=7)
    await apply_auctions(
        pool,
        a_lost_auction(shown),
        a_lost_auction(shown, outcome=REMOVED, removed=(RemovedCandidates("floor", 1),)),
        a_lost_auction(shown, outcome=REMOVED, removed=(RemovedCandidates("targeting:country", 1),)),
        an_auction(uuid4(), winner=a_win(final_price=Micros(1))),
    )

    found = await delivery(admin, shown.campaign)

    assert found["auctions"] == {
        "held": 4,
        "absent": 1,
        "removed": {"floor": 1, "targeting:country": 1},
        "lost": 1,
        "won": 0,
        "ecpm": 7.0,
        "winningEcpm": 9.0,
    }
    assert (states(found)["floor"], states(found)["auctions"]) == ("limits", "stops")
    assert check(found, "floor")["passed"] == 3


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (
            ("budget_pending",),
            "There were auctions in which a delivery process waited for a piece of its budget.",
        ),
        (
            ("budget_pending", "daily_budget"),
            "There were auctions in which its budgets had nothing left to offer at that moment.",
        ),
    ],
)
async def test_a_pending_budget_limits_a_campaign(
    admin: Client, pool: Pool, steps: tuple[str, ...], sentence: str
) -> None:
    placement = await admin.make_placement(delivery="auction", placementType="feed")
    shown = await make_shown_campaign(admin, placement=placement, bidAmount=7)
    removed = [
        a_lost_auction(shown, outcome=REMOVED, removed=(RemovedCandidates(step, 1),)) for step in steps
    ]
    await apply_auctions(pool, a_lost_auction(shown), *removed)

    found = await delivery(admin, shown.campaign)

    budget = check(found, "budget")
    assert (budget["state"], budget["passed"], budget["of"]) == ("limits", 1, 1 + len(steps))
    assert budget["sentence"] == sentence


async def test_the_placement_check_names_a_missing_bid(admin: Client) -> None:
    placement = await admin.make_placement(delivery="auction")
    shown = await make_shown_campaign(admin, placement=placement)

    assert (
        check(await delivery(admin, shown.campaign), "placements")["sentence"] == "The campaign bids nothing."
    )


async def test_an_advertiser_sees_its_own_campaigns_and_nothing_of_others(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    advertiser = await admin.make_advertiser()
    own = await admin.make_campaign(advertiserId=advertiser["id"])
    foreign = await make_shown_campaign(admin)
    await admin.link(own, foreign.placement)
    await admin.assign(own, foreign.placement, await admin.make_banner(advertiserId=advertiser["id"]))
    await EventWriter(pool).write(foreign.seen())

    async with control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as client:
        found = await delivery(client, own)
        problem(
            await client.get(f"/admin/campaigns/{foreign.campaign['id']}/delivery"), 404, "CAMPAIGN_NOT_FOUND"
        )

    assert check(found, "requests")["of"] is None
    async with control.acting_as(Role.PUBLISHER) as publisher:
        problem(await publisher.get(f"/admin/campaigns/{own['id']}/delivery"), 403, "FORBIDDEN")


async def test_a_decision_can_be_explained_for_another_moment(admin: Client) -> None:
    shown = await make_shown_campaign(admin, endsAt="2026-11-20T00:00:00Z")
    path = f"/banners/explain/{shown.placement['slug']}"

    later = (await admin.get(path, params={"at": "2026-11-21T08:00:00Z"})).json()

    assert (await admin.get(path)).json()["winner"] == shown.banner["id"]
    assert later["candidates"][0]["removedBy"] == "campaign_dates"
    assert later["context"]["hour"] == 8
    problem(await admin.get(path, params={"at": "tomorrow"}), 400, "VALIDATION_FAILED")


async def test_a_contextual_campaign_is_told_which_pages_it_reaches(admin: Client) -> None:
    site = await admin.make_site(floorCpm=2.4, approvalMode="manual", cronSchedule=None)
    await admin.make_placement(delivery="contextual", siteId=site["id"])
    page = {"url": f"https://{site['domain']}/a", "categories": [{"id": "539", "confidence": 0.9}]}
    assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    campaign = await admin.make_campaign(bidAmount=2, categories=["483", "424"])
    banner = await admin.make_banner()
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    found = await delivery(admin, campaign)

    sentence = f"Its bid is 0.40 under the floor of 1 page of {site['domain']}."
    assert found["verdict"] == sentence
    assert check(found, "contextual_floor")["change"] == "Raise bidAmount of the campaign by 0.40 or more."
    assert check(found, "categories")["sentence"] == "No page is about Cats."
    assert found["contextual"]["sites"] == [
        {
            "siteId": site["id"],
            "domain": site["domain"],
            "pages": 1,
            "reached": 0,
            "removed": {"below_floor": 1},
            "bidMissing": 0.4,
        }
    ]
    await admin.patch(f"/admin/campaigns/{campaign['id']}", json={"bidType": "cpc"})
    stopped = {one["name"] for one in (await delivery(admin, campaign))["checks"] if one["state"] != "ok"}
    assert stopped == {"contextual_bid", "categories"}

    await admin.patch(f"/admin/campaigns/{campaign['id']}", json={"bidType": "cpm", "bidAmount": 2.4})

    assert (await delivery(admin, campaign))["verdict"] == (
        f"1 site waits for approval, with 1 page: {site['domain']}."
    )


async def test_banners_for_contextual_slots_whose_schedules_are_closed_stop_their_campaign(
    admin: Client,
) -> None:
    campaign = await admin.make_campaign(bidAmount=2, categories=["483"])
    for fields in ({"publishAt": "2099-01-01T00:00:00Z"}, {"isActive": False}):
        banner = await admin.make_banner(**fields)
        await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    found = await delivery(admin, campaign)

    schedule = check(found, "schedule")
    assert (schedule["state"], schedule["passed"], schedule["of"]) == ("stops", 0, 1)
    assert found["verdict"] == schedule["sentence"]


async def test_a_strategy_that_bids_less_than_the_floor_of_contextual_slots_is_told(
    admin: Client, pool: Pool
) -> None:
    site = await admin.make_site(floorCpm=2, approvalMode="automatic")
    await admin.make_placement(delivery="contextual", siteId=site["id"])
    page = {"url": f"https://{site['domain']}/a", "categories": [{"id": "483", "confidence": 0.9}]}
    assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    campaign = await admin.make_campaign(bidAmount=5, categories=["483"], budgetDailyPaisa=10_000)
    banner = await admin.make_banner()
    await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    state = a_busy_state(charged=1, held=0, leased=5, daily_budget=Micros(100_000_000))
    await keep(
        pool, campaign, msgspec.structs.replace(state, bids=BidProgress(day=state.day, multiplier=0.2))
    )

    found = await delivery(admin, campaign)

    assert found["verdict"] == (
        f"Its strategy bids 20% of its bid now, which is 1.00 under the floor of 1 page of {site['domain']}."
    )
    assert found["contextual"]["sites"][0]["bidMissing"] == 1.0
