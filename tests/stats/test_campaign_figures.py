"""The figures of a list of campaigns, and the placements that campaigns can ask for."""

from datetime import timedelta
from uuid import UUID

import pytest

from adloom.budgets.traffic.counts import add_counts, make_placement_day_key
from adloom.console.pages.campaigns.assignments import describe_offer
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.placements.api import round_roughly
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, problem


async def figures(client: Client, *campaigns: Json) -> list[Json]:
    answer = await client.get(
        "/admin/stats/campaigns", params={"campaignId": [one["id"] for one in campaigns]}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def offered(client: Client, **query: str) -> list[Json]:
    answer = await client.get("/admin/offered-placements", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def test_a_campaign_has_its_counts_its_spend_and_its_pace(
    admin: Client, pool: Pool, writer: EventWriter
) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100, budgetTotalPaisa=5_000, impressionCap=10)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await keep(pool, campaign, a_busy_state(charged=12, held=3, leased=4, pacing=PacingStrategy.SMOOTH))
    banner, placement = await admin.make_banner(), await admin.make_placement()
    await writer.write(
        *[seen(banner, placement, campaign)] * 4,
        seen(banner, placement, campaign, is_valid=False),
        clicked(banner, placement, campaign),
    )

    [found] = await figures(admin, campaign)

    assert found == {
        "campaignId": campaign["id"],
        "impressions": 4,
        "clicks": 1,
        "ctr": 0.25,
        "impressionCap": 10,
        "clickCap": None,
        "spentTodayPaisa": 12,
        "spentTotalPaisa": 12,
        "dailyBudgetPaisa": 100,
        "totalBudgetPaisa": 5_000,
        "pace": 0.2,
        "dailySpentAt": None,
        "totalSpentAt": "2027-06-11T08:00:00Z",
    }


async def test_a_campaign_that_does_not_run_has_no_pace_and_no_end(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100)
    await keep(pool, campaign, a_busy_state(charged=90, held=0, leased=0, pacing=PacingStrategy.SMOOTH))

    [found] = await figures(admin, campaign)

    assert (found["spentTodayPaisa"], found["pace"], found["dailySpentAt"]) == (90, None, None)


async def test_an_account_gets_the_figures_of_its_own_in_the_order_of_the_ids(
    control: ControlPlane, admin: Client
) -> None:
    advertiser = await admin.make_advertiser()
    foreign = await admin.make_campaign()
    own = [await admin.make_campaign(advertiserId=advertiser["id"]) for _ in range(2)]

    async with control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as owner:
        found = await figures(owner, own[1], foreign, own[0])
        nothing = await owner.get("/admin/stats/campaigns")

    assert [one["campaignId"] for one in found] == [own[1]["id"], own[0]["id"]]
    problem(nothing, 400, "VALIDATION_FAILED")


async def test_an_advertiser_finds_placements_by_name_with_what_a_buyer_wants_to_know(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey, writer: EventWriter
) -> None:
    publisher = await admin.make_publisher()
    site = await admin.make_site(publisherId=publisher["id"], domain="news.example")
    placement = await admin.make_placement(
        label="Front page",
        publisherId=publisher["id"],
        siteId=site["id"],
        floorCpm=1.5,
        recommendedWidth=970,
        recommendedHeight=250,
    )
    await admin.make_placement(label="Front page, off", isActive=False)
    await admin.make_placement(
        label="Front page, by content", delivery="contextual", siteId=site["id"], publisherId=publisher["id"]
    )
    other = await admin.make_placement(label="Another")
    await writer.write(*[seen(await admin.make_banner(), placement)] * 14)
    await writer.write(*[seen(await admin.make_banner(), other, is_valid=False)] * 28)
    [key, other_key] = [
        await pool.fetchval("SELECT id FROM placements WHERE public_id = $1::text::uuid", one["id"])
        for one in (placement, other)
    ]
    for age, requests in ((0, {key: 1_234}), (1, {key: 1_111, other_key: 4_690})):
        await add_counts(valkey, {}, (control.clock.now().date() - timedelta(days=age), requests))

    async with control.acting_as(Role.ADVERTISER) as advertiser:
        [found] = await offered(advertiser, search="front")
        by_site = await offered(advertiser, search="NEWS.example")
        busiest = await offered(advertiser, sort="-impressionsPerDay")
        asked_most = await offered(advertiser, sort="-requestsPerDay")
    async with control.acting_as(Role.PUBLISHER) as stranger:
        refused = await stranger.get("/admin/offered-placements")

    assert (found["id"], found["siteDomain"], found["floorCpm"]) == (placement["id"], "news.example", 1.5)
    assert (found["recommendedWidth"], found["recommendedHeight"], found["isOpen"]) == (970, 250, False)
    assert [one["id"] for one in by_site] == [placement["id"]]
    assert [(one["id"], one["impressionsPerDay"]) for one in busiest] == [
        (placement["id"], 2),
        (other["id"], 0),
    ]
    assert [(one["id"], one["requestsPerDay"]) for one in asked_most] == [
        (other["id"], 2_300),
        (placement["id"], 1_200),
    ]
    problem(refused, 403, "FORBIDDEN")


async def test_placements_are_offered_without_their_requests_while_those_cannot_be_read(
    admin: Client, control: ControlPlane, valkey: Valkey
) -> None:
    await admin.make_placement()
    await valkey.set(make_placement_day_key(control.clock.now().date()), "not a hash")

    [found] = await offered(admin, sort="-requestsPerDay")

    assert found["requestsPerDay"] is None
    assert "a day" not in describe_offer(found)


@pytest.mark.parametrize(
    ("a_day", "told"),
    [(1_200.0, "about 1,200 requests a day"), (0.4, "asked for less than once a day")],
)
def test_the_picker_of_placements_says_how_often_each_is_asked_for(a_day: float, told: str) -> None:
    row = {
        "label": "Front page",
        "slug": "front",
        "siteDomain": "news.example",
        "recommendedWidth": None,
        "recommendedHeight": None,
        "recommendedAspectRatio": "16:9",
        "floorCpm": 0,
        "isOpen": True,
        "requestsPerDay": a_day,
    }

    assert describe_offer(row).split(" · ") == ["Front page (front)", "news.example", "16:9", told]


def test_how_often_a_placement_is_seen_is_told_roughly() -> None:
    assert [round_roughly(number) for number in (0, 1.4, 123.4, 98_765)] == [0, 1.4, 120, 99_000]
