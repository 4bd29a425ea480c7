"""Refunds over HTTP: bill, budgets, statistics and history agree, and a repeated request gives back once."""

import asyncio
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from adloom.budgets.addresses import CAMPAIGN as CAMPAIGN_KIND
from adloom.budgets.messages import DayTotal
from adloom.budgets.money.reconcile_store import reconcile_day
from adloom.budgets.money.store import MoneyWriter
from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId, SystemIds
from adloom.core.money import Micros, micros_from_paisa
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.stats.refunds.store import PendingRefunds, RefundRequest, choose_charges
from tests.budgets.test_money_store import a_charge
from tests.budgets.worker_stage import Stage
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import NOON, UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem

TODAY = date(2026, 11, 15)
CHARGED_BEFORE_A_RESET = """
    INSERT INTO money_entries OVERRIDING USER VALUE
    SELECT (jsonb_populate_record(it, jsonb_build_object('budget_window', 0, 'request_id', gen_random_uuid()))).*
      FROM money_entries AS it WHERE day = $1
"""
PAISA = micros_from_paisa(1)


async def a_charged(client: Client, pool: Pool, control: ControlPlane, *, charges: int = 6) -> Json:
    """A campaign that was charged two paisa each: half of it today, half of it the day before."""
    campaign = await client.make_campaign(budgetDailyPaisa=100, budgetTotalPaisa=charges * 2)
    banner, placement = await client.make_banner(), await client.make_placement()
    state = a_busy_state(charged=charges * 2, held=0, leased=0)
    of_today = Micros(charges * PAISA)
    state = msgspec.structs.replace(
        state, buffer=(), flush_at=None, spent_by_day={TODAY: of_today}, spent_window=of_today
    )
    await keep(pool, campaign, state)
    now = control.clock.now()
    rows = [
        a_charge(
            number + 1,
            campaign_id=CampaignId(UUID(campaign["id"])),
            advertiser_id=None,
            amount=Micros(2 * PAISA),
            window=1,
            at=now - timedelta(days=number % 2),
            day=TODAY - timedelta(days=number % 2),
            banner_id=BannerId(UUID(banner["id"])),
            placement_id=PlacementId(UUID(placement["id"])),
        )
        for number in range(charges)
    ]
    totals = [
        DayTotal(
            kind=CAMPAIGN_KIND,
            id=CampaignId(UUID(campaign["id"])),
            day=TODAY - timedelta(days=ago),
            spent=Micros(sum(row.amount for row in rows if row.day == TODAY - timedelta(days=ago))),
        )
        for ago in (0, 1)
    ]
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter(ManualClock(NOON)).write(connection, [*rows, *totals])
    return campaign


async def refund(client: Client, campaign: Json, **body: object) -> Any:
    filled = {"amountPaisa": 3, "reason": "clicks of a robot", **body}
    return await client.post(f"/admin/campaigns/{campaign['id']}/refunds", json=filled)


async def spend(client: Client, campaign: Json, day: date) -> int:
    query = {"from": str(day), "to": str(day), "campaignId": campaign["id"]}
    return (await client.get("/admin/stats/banners", params=query)).json()["totals"]["spendPaisa"]


async def test_a_refund_is_in_bill_budgets_statistics_and_history(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_charged(admin, pool, control)
    async with Stage(pool, valkey, clock=control.clock).running():
        answer = await refund(admin, campaign, amountPaisa=7, correlationId="robot-1")
        again = await refund(admin, campaign, amountPaisa=7, correlationId="robot-1")

    assert answer.status_code == 201, answer.text
    assert (answer.json()["amountPaisa"], answer.json()["state"]) == (7, "done")
    assert again.json() == answer.json()
    # The newest charges first: all six of today, and one of the day before.
    yesterday = TODAY - timedelta(days=1)
    assert (await spend(admin, campaign, TODAY), await spend(admin, campaign, yesterday)) == (0, 5)
    budget = (await admin.get(f"/admin/campaigns/{campaign['id']}/budget")).json()
    assert budget["spentTotalPaisa"] == 5
    async with pool.acquire() as connection:
        bills = [await reconcile_day(connection, day) for day in (TODAY, yesterday)]
    assert [(one.bill, one.refunded, one.is_balanced) for one in bills] == [
        (0, 6 * PAISA, True),
        (5 * PAISA, PAISA, True),
    ]
    trail = (await admin.get("/admin/audit", params={"noun": "budget", "nounId": campaign["id"]})).json()
    [entry] = trail["items"]
    assert (entry["action"], entry["changes"]["refundedPaisa"]["to"]) == ("refund", 7)
    listed = (await admin.get(f"/admin/campaigns/{campaign['id']}/refunds")).json()
    assert listed["items"] == [answer.json()]


async def test_many_refunds_at_once_leave_connections_for_others(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_charged(admin, pool, control)
    tokens = [control.token(Role.ADMIN, subject=f"admin {number}") for number in range(2)]
    clients = [control.client(Authorization=f"Bearer {token}") for token in tokens]
    async with Stage(pool, valkey, clock=control.clock).running():
        asked = [refund(clients[number % 2], campaign, amountPaisa=1) for number in range(12)]
        answers = await asyncio.gather(*asked)

    assert [one.status_code for one in answers] == [201] * 12


async def test_a_refund_of_a_day_gives_back_charges_of_that_day(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_charged(admin, pool, control)
    yesterday = TODAY - timedelta(days=1)
    async with Stage(pool, valkey, clock=control.clock).running():
        answer = await refund(admin, campaign, amountPaisa=4, day=str(yesterday))

    assert answer.status_code == 201, answer.text
    assert (await spend(admin, campaign, TODAY), await spend(admin, campaign, yesterday)) == (6, 2)


async def test_what_was_charged_since_a_reset_is_given_back_first(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    campaign = await a_charged(admin, pool, control)
    wanted = RefundRequest(
        id=RequestId(SystemIds().make()),
        campaign_id=CampaignId(UUID(campaign["id"])),
        correlation_id="robot-1",
        amount=Micros(7 * PAISA),
        reason="clicks of a robot",
        day=TODAY,
        placement_id=None,
        created_at=NOON,
    )
    async with pool.acquire() as connection:
        await connection.execute(CHARGED_BEFORE_A_RESET, TODAY)
        parts, missing = await choose_charges(connection, wanted, None)

    assert [(part.window, part.amount) for part in parts] == [(1, 6 * PAISA), (0, PAISA)]
    assert missing == 0


@pytest.mark.parametrize(
    "body", [{"amountPaisa": 13}, {"amountPaisa": 7, "day": "2026-11-15"}, {"placementId": str(UNKNOWN_ID)}]
)
async def test_more_than_was_charged_is_a_409_that_says_how_much_is_left(
    admin: Client, control: ControlPlane, pool: Pool, body: Json
) -> None:
    campaign = await a_charged(admin, pool, control)

    problem(await refund(admin, campaign, **body), 409, "REFUND_EXCEEDS_SPEND")

    assert (await admin.get(f"/admin/campaigns/{campaign['id']}/refunds")).json()["items"] == []


async def test_without_a_worker_a_refund_is_pending_and_given_back_once_when_one_comes(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_charged(admin, pool, control)
    pending = PendingRefunds(pool, valkey, control.clock)

    asked = await refund(admin, campaign, correlationId="robot")
    problem(await refund(admin, campaign, correlationId="other"), 409, "REFUND_PENDING")
    [waiting] = (await admin.get(f"/admin/campaigns/{campaign['id']}/refunds")).json()["items"]
    control.clock.advance(timedelta(minutes=1))
    async with Stage(pool, valkey, clock=control.clock).running():
        await pending.settle()
        await pending.settle()
        again = await refund(admin, campaign, correlationId="robot")

    assert (asked.status_code, asked.json()["state"], asked.json()["refundedAt"]) == (202, "pending", None)
    assert waiting == asked.json()
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (201, waiting["id"], "done")
    assert await spend(admin, campaign, TODAY) == 3


async def test_another_refund_cannot_have_the_name_of_one(
    admin: Client, control: ControlPlane, pool: Pool, valkey: Valkey
) -> None:
    campaign = await a_charged(admin, pool, control)
    async with Stage(pool, valkey, clock=control.clock).running():
        await refund(admin, campaign, correlationId="robot")
        problem(await refund(admin, campaign, correlationId="robot", amountPaisa=1), 409, "REFUND_DIFFERS")


@pytest.mark.parametrize(
    ("body", "field"),
    [({"amountPaisa": 0}, "amountPaisa"), ({"amountPaisa": 1.5}, "amountPaisa"), ({"reason": " "}, "reason")],
)
async def test_a_wrong_field_is_named(admin: Client, body: Json, field: str) -> None:
    campaign = await admin.make_campaign()

    assert error_fields((await refund(admin, campaign, **body)).json()) == {field}
