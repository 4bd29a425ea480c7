"""`spendPaisa` of the statistics: charges, by their time, per account."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from adloom.budgets.messages import ChargeKind, MoneyKind, MoneyRow
from adloom.budgets.money.store import MoneyWriter
from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime.postgres import Pool
from adloom.stats.rollup import Rollup
from adloom.stats.rollup_store import read_stale_days
from tests.stats.event_writer import EventWriter, seen
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane

TODAY = NOON.date()
YESTERDAY = TODAY - timedelta(days=1)


def a_charge(banner: Json, placement: Json, campaign: Json, amount: int, at: datetime = NOON) -> MoneyRow:
    return MoneyRow(
        kind=MoneyKind.CHARGE,
        campaign_id=CampaignId(UUID(campaign["id"])),
        advertiser_id=None,
        day=date(2026, 1, 1),  # The budget's day, which does not matter here.
        window=1,
        amount=Micros(amount),
        at=at,
        lease=0,
        second=0,
        request_id=RequestId(uuid4()),
        slot=0,
        confirmed_by=ChargeKind.IMPRESSION,
        banner_id=BannerId(UUID(banner["id"])),
        placement_id=PlacementId(UUID(placement["id"])),
    )


async def charge(pool: Pool, *rows: msgspec.Struct) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter(ManualClock(NOON)).write(connection, rows)


async def spent(
    client: Client, groupings: str = "day", **params: str
) -> tuple[list[tuple[Any, Any]], int | None]:
    """Return the first key and the spend of each row, and the total."""
    query = {"from": str(YESTERDAY), "to": str(TODAY), "groupBy": groupings, **params}
    answer = await client.get("/admin/stats/banners", params=query)
    assert answer.status_code == 200, answer.text
    items = [(next(iter(item.values())), item["spendPaisa"]) for item in answer.json()["items"]]
    return items, answer.json()["totals"]["spendPaisa"]


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_charges_are_added_up_by_every_key_that_they_have(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    pool: Pool,
    writer: EventWriter,
) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    one, other = await admin.make_campaign(), await admin.make_campaign()
    await writer.write(
        seen(banner, placement, one), seen(banner, placement, one, at=NOON - timedelta(days=1))
    )
    midnight = datetime(2026, 11, 15, tzinfo=UTC)
    await charge(
        pool,
        a_charge(banner, placement, one, 15_000, midnight - timedelta(microseconds=1)),
        a_charge(banner, placement, one, 15_000, midnight),
        a_charge(banner, placement, other, 25_000),
    )
    if is_rolled_up:
        await writer.roll_up()

    assert await spent(admin) == ([("2026-11-14", 1), ("2026-11-15", 4)], 5)
    # Half a paisa each is zero alone, and one together.
    assert await spent(admin, "banner") == ([(banner["id"], 5)], 5)
    assert sorted((await spent(admin, "campaign"))[0]) == sorted([(one["id"], 3), (other["id"], 2)])
    assert await spent(admin, "placement", campaignId=other["id"]) == ([(placement["id"], 2)], 2)
    assert [paisa for _, paisa in (await spent(admin, "hour"))[0]] == [0, 1, 1, 2]
    assert (await spent(admin, "country"))[1] is None
    assert (await spent(admin, device="mobile", groupings="day"))[1] in {None, 0}


async def test_an_account_sees_only_its_own_charges(admin: Client, pool: Pool, control: ControlPlane) -> None:
    payer, other_advertiser = await admin.make_advertiser(), await admin.make_advertiser()
    banner, placement = await admin.make_banner(), await admin.make_placement()
    campaign = await admin.make_campaign(advertiserId=payer["id"])
    await charge(pool, a_charge(banner, placement, campaign, 70_000))

    for account, paisa in ((payer, 7), (other_advertiser, 0)):
        async with control.acting_as(Role.ADVERTISER, UUID(account["id"])) as client:
            assert (await spent(client))[1] == paisa


async def test_a_charge_that_is_written_after_the_rollup_of_its_day_is_in_the_next_one(
    admin: Client, pool: Pool
) -> None:
    """At midnight a charge waits up to half a second to be written; while PostgreSQL is busy, for longer."""
    banner, placement = await admin.make_banner(), await admin.make_placement()
    campaign = await admin.make_campaign()
    midnight = datetime(2026, 11, 15, tzinfo=UTC)
    last_moment = midnight - timedelta(milliseconds=300)
    await EventWriter(pool).write(seen(banner, placement, campaign, at=NOON - timedelta(days=1)))
    await charge(pool, a_charge(banner, placement, campaign, 30_000, NOON - timedelta(days=1)))
    rollup = Rollup(pool, ManualClock(midnight))

    async with pool.acquire() as connection, connection.transaction():
        # It begins before the day is over, and is committed after the rollup has read.
        await MoneyWriter(ManualClock(last_moment)).write(
            connection, [a_charge(banner, placement, campaign, 20_000, last_moment)]
        )
        await rollup.roll_up(YESTERDAY)
    assert await spent(admin) == ([("2026-11-14", 5)], 5), "read live until it is rolled up again"
    await rollup.roll_up(YESTERDAY, only_if_stale=True)
    assert await spent(admin) == ([("2026-11-14", 5)], 5)

    late = a_charge(banner, placement, campaign, 10_000, last_moment - timedelta(hours=1))
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter(ManualClock(midnight + timedelta(hours=2))).write(connection, [late])
    assert await spent(admin) == ([("2026-11-14", 6)], 6)
    assert [one.day for one in await read_stale_days(pool, before=TODAY, quiet_since=midnight)] == [YESTERDAY]
    await rollup.roll_up(YESTERDAY, only_if_stale=True)
    assert await pool.fetchval("SELECT spend_micros FROM banner_stats") == 60_000
    assert not await read_stale_days(pool, before=TODAY, quiet_since=midnight)


async def test_a_charge_of_today_makes_no_day_stale(admin: Client, pool: Pool) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    campaign = await admin.make_campaign()
    await EventWriter(pool).write(seen(banner, placement, campaign))

    await charge(pool, a_charge(banner, placement, campaign, 10_000))

    assert await pool.fetchval("SELECT sum(corrections) FROM events.event_days") == 0
