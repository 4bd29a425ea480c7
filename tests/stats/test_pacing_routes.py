"""A site's pacing: the traffic of its day, the learned shapes, and how its campaigns follow them."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from adloom.budgets.traffic.counts import INSTALLATION, HourCounts, add_counts
from adloom.budgets.traffic.learner import TrafficLearner
from adloom.budgets.traffic.site_day import DAY_SECONDS, SiteDay, find_site_day
from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.schedule.pace_control import PaceState
from adloom.schedule.traffic_shape import TrafficShape
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)  # A Sunday: the clock of the control plane.


async def make_site(client: Client, **fields: object) -> tuple[Json, str]:
    answer = await client.post("/admin/sites", json={"domain": f"{uuid4()}.example.com", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json(), f"/admin/sites/{answer.json()['id']}/pacing"


async def find_key(pool: Pool, site: Json) -> int:
    return await pool.fetchval("SELECT id FROM sites WHERE public_id = $1::text::uuid", site["id"])


async def count(valkey: Valkey, key: int, day: SiteDay, by_hour: list[int]) -> None:
    for hour, requests in enumerate(by_hour):
        await add_counts(valkey, {key: (day, hour, HourCounts(requests, requests // 2, 1))})


def a_day(now: datetime = NOON, *, day_seconds: int = DAY_SECONDS) -> SiteDay:
    return find_site_day(now, timezone="UTC", day_seconds=day_seconds)


async def test_a_new_site_has_a_flat_day_without_traffic(admin: Client) -> None:
    _, path = await make_site(admin)
    answer = (await admin.get(path)).json()
    assert answer == {
        "dayStart": "2026-11-15T00:00:00Z",
        "elapsed": 43_200.0,
        "requests": 0,
        "served": 0,
        "throttled": 0,
        "shapes": {"weekday": [1.0] * 24, "weekend": [1.0] * 24},
        "campaigns": [],
    }


async def test_the_day_s_counts_are_summed(admin: Client, pool: Pool, valkey: Valkey) -> None:
    site, path = await make_site(admin)
    await count(valkey, await find_key(pool, site), a_day(), [10, 20, 30])
    answer = (await admin.get(path)).json()
    assert (answer["requests"], answer["served"], answer["throttled"]) == (60, 30, 3)


async def test_a_simulated_day_lasts_minutes(admin: Client) -> None:
    _, path = await make_site(admin, pacing={"dayDurationSeconds": 7_000})
    answer = (await admin.get(path)).json()
    assert 0 <= answer["elapsed"] < 7_000


async def test_shapes_begin_with_what_the_publisher_says(admin: Client) -> None:
    _, path = await make_site(admin, pacing={"weekdayShape": [0] * 23 + [5]})
    shapes = (await admin.get(path)).json()["shapes"]
    assert shapes == {"weekday": [0.0] * 23 + [24.0], "weekend": [1.0] * 24}


async def test_a_campaign_on_the_site_shows_its_pace_and_only_to_the_house(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    account = uuid4()
    async with control.acting_as(Role.PUBLISHER, account) as publisher:
        site, path = await make_site(publisher)
        campaign = await admin.make_campaign(budgetDailyPaisa=100)
        placement = await publisher.make_placement(siteId=site["id"])
        links = f"/admin/campaigns/{campaign['id']}/placements"
        answer = await admin.post(links, json={"placementId": placement["id"]})
        assert answer.status_code == 201, answer.text
        assert (await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")).status_code == 200
        state = a_busy_state(charged=25, held=0, leased=0)
        state = msgspec.structs.replace(state, pace=PaceState(throttle=0.5))
        await keep(pool, campaign, state)
        [seen] = (await admin.get(path)).json()["campaigns"]
        hidden = (await publisher.get(path)).json()["campaigns"]

        # It runs on this site only, and follows its traffic: all of it comes in the evening.
        evening = [0.0] * 18 + [1.0] * 6
        pacing = {"weekdayShape": evening, "weekendShape": evening}
        await publisher.patch(f"/admin/sites/{site['id']}", json={"pacing": pacing})
        key = await find_key(pool, site)
        await pool.execute("DELETE FROM brain_states")
        await keep(pool, campaign, msgspec.structs.replace(state, site_key=key))
        [of_site] = (await admin.get(path)).json()["campaigns"]
        await TrafficLearner(pool, valkey, ManualClock(NOON)).learn()
        plan = (await admin.get(f"/admin/campaigns/{campaign['id']}/bidding")).json()["plan"]

    assert seen == {
        "campaignId": campaign["id"],
        "dailyBudgetPaisa": 100,
        "spentPaisa": 25,
        "expectedPaisa": 50,
        "ratio": 0.5,
        "throttle": 0.5,
    }
    assert hidden == []
    assert (of_site["expectedPaisa"], of_site["ratio"]) == (0, None)
    assert [point["expectedPaisa"] for point in plan[17::3]] == [0, 33, 83]


@pytest.mark.parametrize("day_seconds", [DAY_SECONDS, 2_400])
async def test_shapes_are_learned_from_traffic_and_survive_a_restart(
    admin: Client, pool: Pool, valkey: Valkey, day_seconds: int
) -> None:
    site, path = await make_site(admin, pacing={"dayDurationSeconds": day_seconds})
    key = await find_key(pool, site)
    followed: list[TrafficShape | None] = []
    busy_at_ten = [100 + 400 * (hour == 10) for hour in range(24)]
    for number in range(8):
        day = a_day(NOON + timedelta(seconds=number * day_seconds), day_seconds=day_seconds)
        await count(valkey, key, day, busy_at_ten)
        await count(valkey, INSTALLATION, a_day(NOON + timedelta(days=number)), busy_at_ten)
        # A learner that was just started: it knows what the one before has learned.
        clock = ManualClock(datetime.fromtimestamp(day.ends + 1, UTC))
        await TrafficLearner(pool, valkey, clock).learn()
        again = TrafficLearner(pool, valkey, clock)
        await again.learn()  # Changes nothing.
        followed.append(again.find_shape(key))
    assert {shape.day_seconds for shape in followed if shape is not None} == {day_seconds}

    shapes = (await admin.get(path)).json()["shapes"]
    kind = "weekday" if day_seconds == DAY_SECONDS else "weekend"
    assert shapes[kind][10] > 2 * max(shapes[kind][11:])


async def test_a_day_that_was_counted_by_a_clock_far_ahead_does_not_end_learning(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    site, _ = await make_site(admin)
    key = await find_key(pool, site)
    ahead = NOON + timedelta(days=365)
    await count(valkey, key, a_day(ahead), [100] * 12)
    await TrafficLearner(pool, valkey, ManualClock(ahead)).learn()
    followed: list[TrafficShape | None] = []

    for number in range(4):
        day = a_day(NOON + timedelta(days=number))
        await count(valkey, key, day, [100 + 400 * (hour == 10) for hour in range(24)])
        learner = TrafficLearner(pool, valkey, ManualClock(datetime.fromtimestamp(day.ends + 1, UTC)))
        await learner.learn()
        followed.append(learner.find_shape(key))

    assert (followed[-1] or TrafficShape()).weekday[10] > 2


async def test_budgets_follow_the_installation_where_the_site_is_not_known(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    site, _ = await make_site(admin, timezone="Asia/Kolkata")
    key = await find_key(pool, site)
    learner = TrafficLearner(pool, valkey, ManualClock(NOON))
    await count(valkey, INSTALLATION, a_day(), [100] * 12)
    await learner.learn()
    of_site, of_all, of_unknown = (learner.find_shape(one) for one in (key, None, 10**9))
    assert of_site is not None
    assert of_all is not None
    assert (of_site.timezone, of_all.timezone) == ("Asia/Kolkata", "UTC")
    assert of_unknown is of_all
