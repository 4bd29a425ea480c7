"""The figures of the first page over HTTP."""

from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import Reading
from adloom.runtime.valkey import Valkey
from adloom.stats.overview.api import OverviewSpan, find_begin, list_starts
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.heartbeats import publish_heartbeat

PAID = """
    INSERT INTO spend_hours (hour, campaign_id, banner_id, placement_id, charges, spent_micros)
    SELECT '2026-11-15T12:00:00Z', campaigns.id, banners.id, placements.id, 1, $4
      FROM campaigns, banners, placements
     WHERE campaigns.public_id = $1 AND banners.public_id = $2 AND placements.public_id = $3
"""


async def read(client: Client, span: str = "today", zone: str = "UTC") -> Json:
    answer = await client.get("/admin/overview", params={"span": span, "timeZone": zone})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def an_ad(client: Client, **fields: object) -> tuple[Json, Json, Json]:
    banner, placement, campaign = (
        await client.make_banner(**fields),
        await client.make_placement(),
        await client.make_campaign(**fields),
    )
    return banner, placement, campaign


async def pay(pool: Pool, ad: tuple[Json, Json, Json], micros: int) -> None:
    banner, placement, campaign = ad
    await pool.execute(PAID, UUID(campaign["id"]), UUID(banner["id"]), UUID(placement["id"]), micros)


@pytest.mark.parametrize(
    ("span", "points", "step"), [("today", 13, 3600), ("24h", 24, 3600), ("7d", 7, 86_400)]
)
async def test_a_span_has_a_point_for_each_of_its_steps(
    span: str, points: int, step: int, admin: Client
) -> None:
    answer = await read(admin, span)

    assert (len(answer["points"]), answer["stepSeconds"]) == (points, step)
    assert answer["totals"]["impressions"] == 0


async def test_impressions_and_clicks_are_in_their_hour(admin: Client, writer: EventWriter) -> None:
    ad = await an_ad(admin)
    await writer.write(seen(*ad, at=NOON), seen(*ad, at=NOON), clicked(*ad, at=NOON))

    today, week = await read(admin), await read(admin, "7d")

    assert (today["points"][-1]["impressions"], today["points"][-1]["clicks"]) == (2, 1)
    assert today["totals"]["ctr"] == week["totals"]["ctr"] == 0.5
    assert week["points"][-1]["impressions"] == 2


async def test_only_charges_to_advertisers_are_revenue(admin: Client, pool: Pool) -> None:
    advertiser = await admin.make_advertiser()
    await pay(pool, await an_ad(admin, advertiserId=advertiser["id"]), 2_000_000)
    await pay(pool, await an_ad(admin), 1_000_000)

    totals = (await read(admin))["totals"]

    assert (totals["spendPaisa"], totals["revenuePaisa"]) == (300, 200)


async def test_requests_are_the_sum_of_those_that_processes_counted(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "delivery-1", Reading(requests=10, filled=9, index_version=1))

    answer = await read(admin, "24h")

    assert (answer["totals"]["requests"], answer["totals"]["fill"]) == (10, 0.9)
    assert [one["requests"] for one in answer["points"]][-2:] == [None, 10], "no process has counted before"


async def test_an_account_sees_its_own_spend_and_no_requests_or_revenue(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey
) -> None:
    advertiser = await admin.make_advertiser()
    await pay(pool, await an_ad(admin, advertiserId=advertiser["id"]), 2_000_000)
    await pay(pool, await an_ad(admin), 1_000_000)
    await publish_heartbeat(valkey, "delivery-1", Reading(requests=10, filled=9, index_version=1))

    async with (
        control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as owner,
        control.acting_as(Role.ADVERTISER) as other,
    ):
        own, others = (await read(owner))["totals"], (await read(other))["totals"]

    assert (own["spendPaisa"], own["revenuePaisa"], own["requests"], own["fill"]) == (200, None, None, None)
    assert others["spendPaisa"] == 0


async def test_an_unknown_span_is_refused(admin: Client) -> None:
    answer = await admin.get("/admin/overview", params={"span": "ever"})

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"span"}


async def test_yesterday_is_not_today(control: ControlPlane, admin: Client, writer: EventWriter) -> None:
    ad = await an_ad(admin)
    await writer.write(seen(*ad, at=NOON))
    control.clock.advance(timedelta(days=1))

    async with control.acting_as(Role.ADMIN) as later:
        assert (await read(later))["totals"]["impressions"] == 0
        assert (await read(later, "7d"))["totals"]["impressions"] == 1


async def test_days_are_those_of_the_time_zone(admin: Client, writer: EventWriter, valkey: Valkey) -> None:
    ad = await an_ad(admin)
    before, after = NOON - timedelta(minutes=90), NOON - timedelta(minutes=30)
    await writer.write(seen(*ad, at=before), seen(*ad, at=after), seen(*ad, at=after))
    await publish_heartbeat(valkey, "delivery-1", Reading(requests=10, filled=9, index_version=1))

    # At noon of UTC it is one in the morning in Auckland.
    today, week = [await read(admin, span, "Pacific/Auckland") for span in ("today", "7d")]
    refused = await admin.get("/admin/overview", params={"timeZone": "Berlin"})

    assert (today["timeZone"], [one["impressions"] for one in today["points"]]) == (
        "Pacific/Auckland",
        [2, 0],
    )
    assert [one["impressions"] for one in week["points"]][-2:] == [1, 2]
    assert week["points"][-1]["beginsAt"] == today["points"][0]["beginsAt"] == "2026-11-15T11:00:00Z"
    assert (week["points"][-1]["requests"], week["totals"]["requests"]) == (10, 10)
    assert error_fields(problem(refused, 400, "VALIDATION_FAILED")) == {"timeZone"}


@given(
    st.integers(0, 10 * 365 * 24 * 60).map(lambda minutes: NOON - timedelta(minutes=minutes)),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Auckland", "Asia/Beirut"]),
)
def test_today_has_each_hour_of_its_day_up_to_now(now: datetime, name: str) -> None:
    zone = ZoneInfo(name)

    hours = list_starts(OverviewSpan.TODAY, now=now, zone=zone)
    days = list_starts(OverviewSpan.LAST_7_DAYS, now=now, zone=zone)

    assert hours[-1] <= now < hours[-1] + timedelta(hours=1)
    assert [later - earlier for earlier, later in pairwise(hours)] == [timedelta(hours=1)] * (len(hours) - 1)
    if len(hours) > 1:
        assert {at.astimezone(zone).date() for at in hours} == {now.astimezone(zone).date()}
        assert (hours[0] - timedelta(hours=1)).astimezone(zone).date() < now.astimezone(zone).date()
    assert [find_begin(at, OverviewSpan.LAST_7_DAYS, zone=zone) for at in days] == days
    assert days[-1].astimezone(zone).date() == now.astimezone(zone).date()
