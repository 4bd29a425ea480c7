"""A day's spend against its plan: the curve itself, and over HTTP per account."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from adloom.schedule.budget_day import build_budget_day
from adloom.stats.spend.curve import Plan, compute_curve
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import NOON, Json
from tests.support.control import Client

DAY = build_budget_day(NOON.date(), "UTC")
HOUR = timedelta(hours=1)
SPEND = """
    INSERT INTO spend_hours (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
    SELECT $1, 1, 1, id, 1, $3 FROM campaigns WHERE public_id = $2
"""


def test_past_hours_add_up_and_future_spend_is_unknown() -> None:
    by_hour = {DAY.starts_at: Micros(3), DAY.starts_at + 11 * HOUR: Micros(4)}

    points = {
        one.at.hour: one for one in compute_curve(DAY, by_hour, Plan(), spent=Micros(9), now=NOON + HOUR / 2)
    }

    assert [points[hour].spent for hour in (1, 11)] == [3, 3]
    at = {
        one.at: one.spent for one in compute_curve(DAY, by_hour, Plan(), spent=Micros(9), now=NOON + HOUR / 2)
    }
    assert (at[NOON], at[NOON + HOUR / 2], at[DAY.ends_at]) == (7, 9, None)


def test_the_planned_line_follows_the_pacing() -> None:
    smooth = compute_curve(DAY, {}, Plan(smooth=Micros(2_400)), spent=Micros(0), now=NOON)
    fast = compute_curve(DAY, {}, Plan(accelerated=Micros(2_400)), spent=Micros(0), now=NOON)

    at = {one.at: one.line for one in smooth}
    assert (at[DAY.starts_at], at[NOON], at[DAY.ends_at]) == (100, 1_440, 2_400)
    assert {one.line for one in fast} == {2_400}


def test_the_plan_of_all_campaigns_is_capped_by_the_advertisers_budget() -> None:
    plan = Plan(smooth=Micros(1_000), accelerated=Micros(1_000), most=Micros(1_500))

    assert plan.find_allowed(DAY.ends_at, DAY) == 1_500


@given(
    st.dictionaries(st.integers(0, 23), st.integers(0, 10**9), max_size=24),
    st.integers(0, 24 * 60),
    st.integers(0, 10**9),
)
def test_a_spend_curve_never_falls_and_ends_at_the_spend(
    hours: dict[int, int], minute: int, budget: int
) -> None:
    now = DAY.starts_at + timedelta(minutes=minute)
    by_hour = {DAY.starts_at + hour * HOUR: Micros(amount) for hour, amount in hours.items()}
    spent = Micros(sum(amount for hour, amount in by_hour.items() if hour <= now))

    points = compute_curve(DAY, by_hour, Plan(smooth=Micros(budget)), spent=spent, now=now)

    known = [one.spent for one in points if one.spent is not None]
    assert known == sorted(known)
    assert known[-1] == spent
    assert [one.at for one in points] == sorted({one.at for one in points})


async def test_the_day_of_a_campaign_has_its_planned_line(admin: Client, pool: Pool) -> None:
    campaign = await admin.make_campaign(budgetDailyPaisa=2_400)
    await keep(pool, campaign, a_busy_state(charged=12, held=0, leased=0))
    eleven = datetime(2026, 11, 15, 11, tzinfo=UTC)
    await pool.execute(SPEND, eleven, UUID(campaign["id"]), 70_000)

    day = await _day(admin, f"/admin/campaigns/{campaign['id']}/budget/day")

    assert (day["day"], day["timezone"], day["dailyBudgetPaisa"], day["spentPaisa"]) == (
        "2026-11-15",
        "UTC",
        2_400,
        12,
    )
    points = {point["at"]: point for point in day["points"]}
    assert points["2026-11-15T11:00:00Z"]["spentPaisa"] == 0
    assert points["2026-11-15T12:00:00Z"] == {
        "at": "2026-11-15T12:00:00Z",
        "spentPaisa": 12,
        "linePaisa": 1_440,
    }
    assert points["2026-11-16T00:00:00Z"]["spentPaisa"] is None


async def test_the_day_of_an_advertiser_is_the_sum_of_its_running_campaigns(
    admin: Client, pool: Pool
) -> None:
    advertiser = await admin.make_advertiser(dailyBudgetPaisa=3_000)
    campaign = await admin.make_campaign(advertiserId=advertiser["id"], budgetDailyPaisa=2_400)
    await admin.make_campaign(advertiserId=advertiser["id"], budgetDailyPaisa=9_000)
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    noon = datetime(2026, 11, 15, 11, tzinfo=UTC)
    await pool.execute(SPEND, noon, UUID(campaign["id"]), 70_000)

    day = await _day(admin, f"/admin/advertisers/{advertiser['id']}/spend/day")

    assert (day["dailyBudgetPaisa"], day["points"][-1]["linePaisa"]) == (3_000, 2_400)


async def test_an_advertiser_without_a_running_campaign_is_projected_to_spend_no_more(
    admin: Client, pool: Pool
) -> None:
    advertiser = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=advertiser["id"], budgetDailyPaisa=2_400)
    await keep(pool, campaign, a_busy_state(charged=12, held=0, leased=0))
    path = f"/admin/advertisers/{advertiser['id']}/spend/day"

    projected = list[tuple[int, int]]()
    for move in ("activate", "pause"):
        assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/{move}")).status_code == 200
        day = await _day(admin, path)
        projected.append((day["spentPaisa"], day["projectedPaisa"]))

    assert projected == [(12, 24), (12, 12)], "at noon"


async def test_only_what_runs_is_projected_to_go_on_within_its_budget(admin: Client, pool: Pool) -> None:
    advertiser = await admin.make_advertiser()
    path = f"/admin/advertisers/{advertiser['id']}/spend/day"
    for charged, budget, moves in (
        (10, 2_400, ("activate",)),
        (30, 35, ("activate",)),
        (90, 2_400, ("activate", "pause")),
    ):
        campaign = await admin.make_campaign(advertiserId=advertiser["id"], budgetDailyPaisa=budget)
        await keep(pool, campaign, a_busy_state(charged=charged, held=0, leased=0))
        for move in moves:
            assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/{move}")).status_code == 200

    free = await _day(admin, path)
    limit = {"dailyBudgetPaisa": 137}
    assert (await admin.patch(f"/admin/advertisers/{advertiser['id']}", json=limit)).status_code == 200
    limited = await _day(admin, path)

    assert (free["spentPaisa"], free["projectedPaisa"]) == (130, 130 + 10 + 5), "at noon"
    assert (limited["spentPaisa"], limited["projectedPaisa"]) == (130, 137)


async def _day(client: Client, path: str) -> Json:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()
