"""Budgets over HTTP: spent, held and remaining amounts, per account."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.kinds import make_campaign_kind
from adloom.core.caller import Role
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import find_shard
from adloom.runtime.postgres import Pool
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import CampaignBench, a_campaign
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, problem

TODAY = "2026-11-15"
NEVER_OFFERED = {
    "spentTodayPaisa": 0,
    "spentTotalPaisa": 0,
    "heldPaisa": 0,
    "leasedPaisa": 0,
    "projectedPaisa": 0,
    "timezone": "UTC",
    "isRunning": False,
    "dailySpentAt": None,
    "totalSpentAt": None,
}
INSERT_STATE = """
    INSERT INTO brain_states (kind, key, shard, version, format, state, changed_at)
    VALUES ('campaign', $1, $2, 1, $3, $4, $5)
"""


def a_busy_state(*, charged: int, held: int, leased: int, **fields: Any) -> CampaignState:
    """A campaign that was granted some paisa: charged, held, and not offered yet."""
    paisa = 10_000
    bench = CampaignBench(a_campaign(**{"daily_budget": None, **fields}))
    cost = Micros(paisa)
    lease = bench.answered(want=Micros((charged + held + leased) * paisa), cost=cost).lease
    given = ((bench.second, (charged + held) * paisa),)
    bench.answered(report=2, lease=lease, given=given, want=Micros(leased * paisa), cost=cost)
    for _ in range(charged):
        bench.take(bench.offered(lease, cost))
    return bench.state


async def keep(pool: Pool, campaign: Json, state: CampaignState, *, format_number: int = 1) -> None:
    """Store a state as its budget actor would."""
    owner = campaign["advertiserId"]
    address = make_campaign_address(
        CampaignId(UUID(campaign["id"])), None if owner is None else AdvertiserId(UUID(owner))
    )
    await pool.execute(
        INSERT_STATE,
        address.key,
        find_shard(address),
        format_number,
        make_campaign_kind().encode(state),
        NOON,
    )


async def budget(client: Client, campaign: Json) -> Json:
    answer = await client.get(f"/admin/campaigns/{campaign['id']}/budget")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def spend(client: Client, advertiser: Json) -> Json:
    answer = await client.get(f"/admin/advertisers/{advertiser['id']}/spend")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_campaign_without_offers_has_spent_nothing(admin: Client) -> None:
    limited = await admin.make_campaign(budgetDailyPaisa=1_000, budgetTotalPaisa=5_000)
    unlimited = await admin.make_campaign(pacingStrategy="Accelerated")

    assert await budget(admin, limited) == {
        "day": TODAY,
        "dailyBudgetPaisa": 1_000,
        "totalBudgetPaisa": 5_000,
        "remainingTodayPaisa": 1_000,
        "pace": 0.0,
        **NEVER_OFFERED,
    }
    assert await budget(admin, unlimited) == {
        "day": TODAY,
        "dailyBudgetPaisa": None,
        "totalBudgetPaisa": None,
        "remainingTodayPaisa": None,
        "pace": None,
        **NEVER_OFFERED,
    }


async def test_a_campaigns_budget_is_the_stored_state_of_its_actor(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100, budgetTotalPaisa=5_000)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await keep(pool, campaign, a_busy_state(charged=12, held=3, leased=4, pacing=PacingStrategy.SMOOTH))

    assert await budget(admin, campaign) == {
        "day": TODAY,
        "dailyBudgetPaisa": 100,
        "totalBudgetPaisa": 5_000,
        "spentTodayPaisa": 12,
        "spentTotalPaisa": 12,
        "heldPaisa": 3,
        "leasedPaisa": 4,
        "remainingTodayPaisa": 85,
        "pace": 0.2,  # Of the 60 that pacing allows by noon.
        "isRunning": True,
        "projectedPaisa": 24,
        "timezone": "UTC",
        "dailySpentAt": None,
        "totalSpentAt": "2027-06-11T08:00:00Z",
    }


async def test_a_changed_budget_is_in_the_next_answer(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100)
    await keep(pool, campaign, a_busy_state(charged=12, held=3, leased=0, daily_budget=Micros(1_000_000)))

    await admin.patch(f"/admin/campaigns/{campaign['id']}", json={"budgetDailyPaisa": 40})

    answer = await budget(admin, campaign)
    assert (answer["dailyBudgetPaisa"], answer["remainingTodayPaisa"]) == (40, 25)


async def test_after_midnight_in_its_zone_a_campaign_has_a_new_day(
    admin: Client, pool: Pool, control: ControlPlane
) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100, timezone="Asia/Kolkata")
    await keep(pool, campaign, a_busy_state(charged=12, held=3, leased=0, timezone="Asia/Kolkata"))

    control.clock.advance(timedelta(minutes=389))  # 23:59 there.
    late = await budget(await _again(admin, control), campaign)
    control.clock.advance(timedelta(minutes=1))
    later = await budget(await _again(admin, control), campaign)

    assert (late["day"], late["spentTodayPaisa"]) == (TODAY, 12)
    assert (later["day"], later["spentTodayPaisa"], later["spentTotalPaisa"]) == ("2026-11-16", 0, 12)
    assert later["remainingTodayPaisa"] == 100


async def _again(client: Client, control: ControlPlane) -> Client:
    """Give the client a new token: the old one has expired."""
    client.headers["Authorization"] = f"Bearer {control.token(Role.ADMIN)}"
    return client


async def test_an_advertisers_spend_is_the_sum_of_its_own_campaigns(admin: Client, pool: Pool) -> None:
    payer = await admin.make_advertiser(dailyBudgetPaisa=500)
    other = await admin.make_advertiser()
    for owner, charged in ((payer, 12), (payer, 30), (other, 7)):
        campaign = await admin.make_campaign(advertiserId=owner["id"])
        await keep(pool, campaign, a_busy_state(charged=charged, held=3, leased=4))

    assert await spend(admin, payer) == {
        "day": TODAY,
        "dailyBudgetPaisa": 500,
        "spentPaisa": 42,
        "heldPaisa": 6,
        "remainingPaisa": 452,
    }
    assert await spend(admin, other) == {
        "day": TODAY,
        "dailyBudgetPaisa": None,
        "spentPaisa": 7,
        "heldPaisa": 3,
        "remainingPaisa": None,
    }


async def test_an_advertiser_that_was_never_charged_has_all_of_its_budget(admin: Client) -> None:
    payer = await admin.make_advertiser(dailyBudgetPaisa=500, timezone="Pacific/Auckland")

    assert await spend(admin, payer) == {
        "day": "2026-11-16",
        "dailyBudgetPaisa": 500,
        "spentPaisa": 0,
        "heldPaisa": 0,
        "remainingPaisa": 500,
    }


async def test_an_advertisers_changed_budget_is_in_the_next_answer(admin: Client) -> None:
    payer = await admin.make_advertiser()

    await admin.put(f"/admin/advertisers/{payer['id']}/budget", json={"dailyBudgetPaisa": 700})

    assert (await spend(admin, payer))["remainingPaisa"] == 700


async def test_fractions_are_rounded_down(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=10)
    bench = CampaignBench(a_campaign(daily_budget=None))
    bench.take(bench.offered(amount=Micros(15_000)))
    await keep(pool, campaign, bench.state)

    answer = await budget(admin, campaign)

    assert (answer["spentTodayPaisa"], answer["remainingTodayPaisa"]) == (1, 8)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
async def test_admins_and_viewers_read_all_budgets(role: Role, control: ControlPlane, admin: Client) -> None:
    payer = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=payer["id"])

    async with control.acting_as(role) as client:
        assert (await budget(client, campaign))["spentTotalPaisa"] == 0
        assert (await spend(client, payer))["spentPaisa"] == 0


async def test_a_publisher_reads_no_budgets(admin: Client, publisher: Client) -> None:
    payer = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=payer["id"])

    problem(await publisher.get(f"/admin/campaigns/{campaign['id']}/budget"), 403, "FORBIDDEN")
    problem(await publisher.get(f"/admin/advertisers/{payer['id']}/spend"), 403, "FORBIDDEN")
    problem(await publisher.get("/admin/spend/stream"), 403, "FORBIDDEN")


async def test_an_unknown_campaign_or_advertiser_is_not_found(admin: Client) -> None:
    problem(await admin.get(f"/admin/campaigns/{uuid4()}/budget"), 404, "CAMPAIGN_NOT_FOUND")
    problem(await admin.get(f"/admin/advertisers/{uuid4()}/spend"), 404, "ADVERTISER_NOT_FOUND")


async def test_a_state_of_another_version_is_not_read_as_empty(admin: Client, pool: Pool) -> None:
    payer = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=payer["id"])
    await keep(pool, campaign, a_busy_state(charged=1, held=0, leased=0), format_number=9)

    problem(await admin.get(f"/admin/campaigns/{campaign['id']}/budget"), 503, "UNAVAILABLE")
    problem(await admin.get(f"/admin/advertisers/{payer['id']}/spend"), 503, "UNAVAILABLE")
