"""Daily budgets over HTTP: the use of each, the sums, and resets."""

import time
from typing import Any

import pytest

from adloom.budgets.transport.wire import INBOX_CHANNEL
from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.worker_stage import Stage
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each

PATH = "/api/v1/admin/budget"


async def read(client: Client, path: str, **params: Any) -> Json:
    answer = await client.get(f"{PATH}/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def a_spent(client: Client, pool: Pool, *, charged: int, held: int = 0, **fields: Any) -> Json:
    """A campaign that has spent some paisa of its daily budget."""
    campaign = await client.make_campaign(**{"budgetDailyPaisa": 100, **fields})
    await keep(pool, campaign, a_busy_state(charged=charged, held=held, leased=0))
    return campaign


async def test_a_pacer_shows_budget_spend_and_utilization_in_whole_units(admin: Client, pool: Pool) -> None:
    campaign = await a_spent(admin, pool, charged=12, held=3, pacingStrategy="Accelerated")

    pacer = await read(admin, f"campaigns/{campaign['id']}")

    assert pacer == {
        "id": campaign["id"],
        "campaignId": campaign["id"],
        "dailyBudget": 1.0,
        "spentToday": 0.12,
        "remainingBudget": 0.88,
        "utilizationPercent": 12.0,
        "strategy": "Accelerated",
        "lastUpdated": "2026-11-15T12:00:00Z",
    }
    assert await read(admin, "pacers", campaignId=campaign["id"]) == {
        "items": [pacer],
        "totalCount": 1,
        "page": 1,
        "pageSize": 20,
        "totalPages": 1,
    }


async def test_a_campaign_that_never_spent_has_its_whole_budget(admin: Client) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=12_345)

    pacer = await read(admin, f"campaigns/{campaign['id']}")

    assert (pacer["dailyBudget"], pacer["spentToday"], pacer["remainingBudget"]) == (123.45, 0.0, 123.45)
    assert (pacer["utilizationPercent"], pacer["strategy"]) == (0.0, PacingStrategy.SMOOTH)


async def test_a_campaign_without_a_daily_budget_has_no_pacer(admin: Client) -> None:
    unlimited = await admin.make_campaign()
    deleted = await admin.make_campaign(budgetDailyPaisa=1)
    await admin.delete(f"/admin/campaigns/{deleted['id']}")

    problem(await admin.get(f"{PATH}/campaigns/{unlimited['id']}"), 404, "BUDGET_NOT_FOUND")
    problem(await admin.get(f"{PATH}/campaigns/{deleted['id']}"), 404, "BUDGET_NOT_FOUND")
    problem(await admin.get(f"{PATH}/campaigns/{UNKNOWN_ID}"), 404, "CAMPAIGN_NOT_FOUND")
    assert (await read(admin, "pacers"))["totalCount"] == 0


async def test_only_pacers_of_current_campaigns_are_listed_in_pages(admin: Client) -> None:
    made = [await admin.make_campaign(budgetDailyPaisa=100) for _ in range(3)]
    over = await admin.make_campaign(budgetDailyPaisa=100)
    await admin.patch(f"/admin/campaigns/{over['id']}/cancel")

    first, second = await read(admin, "pacers", pageSize=2), await read(admin, "pacers", pageSize=2, page=2)

    listed = [one["campaignId"] for one in (*first["items"], *second["items"])]
    assert sorted(listed) == sorted(one["id"] for one in made)
    assert (first["totalCount"], first["totalPages"]) == (3, 2)
    assert (await read(admin, f"campaigns/{over['id']}"))["dailyBudget"] == 1.0


async def test_statistics_are_the_sums_of_the_pacers(admin: Client, pool: Pool) -> None:
    assert await read(admin, "statistics") == {
        "totalCampaigns": 0,
        "totalDailyBudget": 0.0,
        "totalSpentToday": 0.0,
        "averageUtilization": 0.0,
        "campaignsExceeded": 0,
    }
    await a_spent(admin, pool, charged=100)
    await a_spent(admin, pool, charged=20)
    await admin.make_campaign(budgetDailyPaisa=300)
    await admin.make_campaign()

    assert await read(admin, "statistics") == {
        "totalCampaigns": 3,
        "totalDailyBudget": 5.0,
        "totalSpentToday": 1.2,
        "averageUtilization": 40.0,
        "campaignsExceeded": 1,
    }
    pacers = (await read(admin, "pacers"))["items"]
    assert sum(one["spentToday"] for one in pacers) == pytest.approx(1.2)


async def test_a_rest_that_pays_for_no_more_impression_is_a_budget_that_is_used_up(
    admin: Client, pool: Pool
) -> None:
    await a_spent(admin, pool, charged=99, bidAmount=14)
    await a_spent(admin, pool, charged=98, bidAmount=14)

    assert (await read(admin, "statistics"))["campaignsExceeded"] == 1


async def test_an_advertiser_sees_its_own_budgets_and_a_publisher_none(
    admin: Client, advertiser: Client, publisher: Client, pool: Pool
) -> None:
    own = await a_spent(advertiser, pool, charged=10)
    other = await a_spent(admin, pool, charged=50)

    assert [one["campaignId"] for one in (await read(advertiser, "pacers"))["items"]] == [own["id"]]
    assert (await read(advertiser, "statistics"))["totalSpentToday"] == 0.1
    assert (await read(advertiser, f"campaigns/{own['id']}"))["spentToday"] == 0.1
    problem(await advertiser.get(f"{PATH}/campaigns/{other['id']}"), 404, "CAMPAIGN_NOT_FOUND")
    for path in ("pacers", "statistics", f"campaigns/{own['id']}"):
        problem(await publisher.get(f"{PATH}/{path}"), 403, "FORBIDDEN")


# --- resets


async def reset(client: Client, campaign: Json, reason: object = "a wrong price") -> Any:
    return await client.put(f"{PATH}/campaigns/{campaign['id']}/reset", json={"reason": reason})


async def test_a_reset_opens_a_new_window_and_is_in_the_audit_trail(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_spent(admin, pool, charged=12, budgetTotalPaisa=500)
    stage = Stage(pool, valkey, clock=control.clock)
    async with stage.running():
        answer = await reset(admin, campaign)

        assert answer.status_code == 200, answer.text
        assert (answer.json()["spentToday"], answer.json()["remainingBudget"]) == (0.0, 1.0)
        assert await read(admin, f"campaigns/{campaign['id']}") == answer.json()
    # The spend of the day and of the total budget stays.
    budget = (await admin.get(f"/admin/campaigns/{campaign['id']}/budget")).json()
    assert (budget["spentTodayPaisa"], budget["spentTotalPaisa"]) == (12, 12)
    trail = (await admin.get("/admin/audit", params={"noun": "budget", "nounId": campaign["id"]})).json()
    [entry] = trail["items"]
    assert (entry["action"], entry["subject"]) == ("reset", "test")
    assert entry["changes"] == {
        "reason": {"from": None, "to": "a wrong price"},
        "spentToday": {"from": 0.12, "to": 0},
    }


async def test_a_campaign_that_never_spent_can_be_reset_too(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100)
    async with Stage(pool, valkey, clock=control.clock).running():
        answer = await reset(admin, campaign)

    assert answer.status_code == 200, answer.text
    assert answer.json()["spentToday"] == 0.0


async def test_a_reset_gets_503_while_no_worker_runs_the_budgets(admin: Client, pool: Pool) -> None:
    campaign = await a_spent(admin, pool, charged=12)

    problem(await reset(admin, campaign), 503, "UNAVAILABLE")

    assert (await read(admin, f"campaigns/{campaign['id']}"))["spentToday"] == 0.12


async def test_a_reset_without_an_answer_gets_503_after_two_seconds(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_spent(admin, pool, charged=12)
    async with valkey.pubsub() as silent_inbox:
        await silent_inbox.subscribe(INBOX_CHANNEL)
        await silent_inbox.get_message(timeout=30)
        began_at = time.monotonic()

        problem(await reset(admin, campaign), 503, "UNAVAILABLE")

        assert time.monotonic() - began_at > 1.5


@for_each("reason", [None, "", "  ", 7, "x" * 256, "a\0b"])
async def test_a_reset_needs_a_reason(reason: object, admin: Client) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=100)

    answer = await reset(admin, campaign, reason)

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"reason"}


async def test_only_an_admin_may_reset_a_budget(
    admin: Client, advertiser: Client, publisher: Client, control: ControlPlane
) -> None:
    own = await advertiser.make_campaign(budgetDailyPaisa=100)

    async with control.acting_as(Role.VIEWER) as viewer:
        for client in (advertiser, publisher, viewer):
            problem(await reset(client, own), 403, "FORBIDDEN")
    problem(await reset(admin, {"id": str(UNKNOWN_ID)}), 404, "CAMPAIGN_NOT_FOUND")
    problem(await reset(admin, await admin.make_campaign()), 404, "BUDGET_NOT_FOUND")
