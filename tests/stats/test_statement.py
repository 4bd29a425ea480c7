"""The monthly statement of a publisher, and its share of what is charged."""

import csv
import io
from datetime import date, datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from adloom.budgets.messages import MoneyKind, MoneyRow
from adloom.budgets.money.store import MoneyWriter
from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.runtime import migrate
from adloom.runtime.postgres import Pool, open_pool
from tests.budgets.test_money_store import a_charge
from tests.stats.event_writer import EventWriter, seen
from tests.support.builders import NOON, Json
from tests.support.control import Client, error_fields, problem
from tests.support.migrating import go_back_to

MONTH = f"{NOON:%Y-%m}"
EARLIER = NOON - timedelta(days=3)


async def charge(pool: Pool, offer: tuple[Json, Json, Json], amount: int, at: datetime) -> None:
    campaign, placement, banner = offer
    await pool.execute(
        """
        INSERT INTO spend_hours (hour, campaign_id, placement_id, banner_id, charges, spent_micros)
        SELECT date_trunc('hour', $5::timestamptz), campaigns.id, placements.id, banners.id, 1, $4
          FROM campaigns, placements, banners
         WHERE campaigns.public_id = $1 AND placements.public_id = $2 AND banners.public_id = $3
        """,
        campaign["id"],
        placement["id"],
        banner["id"],
        amount,
        at,
    )


async def set_share(pool: Pool, publisher: Json, since: date, percent: int) -> None:
    await pool.execute(
        """
        INSERT INTO publisher_shares SELECT id, $2, $3 FROM publishers WHERE public_id = $1
        ON CONFLICT (publisher_id, since) DO UPDATE SET percent = excluded.percent
        """,
        publisher["id"],
        since,
        percent,
    )


async def make_paid_campaign(admin: Client) -> Json:
    advertiser = await admin.make_advertiser()
    return await admin.make_campaign(advertiserId=advertiser["id"])


async def read(client: Client, publisher: Json, **params: str) -> Json:
    answer = await client.get(
        f"/admin/publishers/{publisher['id']}/statement", params={"month": MONTH, **params}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_statement_has_the_share_that_each_day_had(
    admin: Client, publisher: Client, writer: EventWriter, pool: Pool
) -> None:
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement = await publisher.make_placement(label="=Aside")
    other = await admin.make_placement()
    banner, campaign = await admin.make_banner(), await make_paid_campaign(admin)
    await set_share(pool, own, EARLIER.date() + timedelta(days=1), 60)
    await charge(
        pool, (campaign, placement, banner), 1_000_000, EARLIER
    )  # Before the first share: all of it.
    await charge(pool, (campaign, placement, banner), 2_000_000, NOON)
    await charge(pool, (campaign, other, banner), 5_000_000, NOON)
    await writer.write(seen(banner, placement, campaign, at=NOON), seen(banner, other, campaign, at=NOON))

    to_house, to_publisher = await read(admin, own), await read(publisher, own)

    [item] = to_house["items"]
    assert (item["chargedPaisa"], item["revenuePaisa"], item["impressions"]) == (300, 220, 1)
    seen_once = {"impressions": 1, "clicks": 0, "invalidImpressions": 0, "invalidClicks": 0}
    assert to_house["totals"] == {**seen_once, "chargedPaisa": 300, "revenuePaisa": 220}
    assert to_publisher["totals"] == {**seen_once, "chargedPaisa": None, "revenuePaisa": 220}
    assert not to_house["isFinal"]
    # What it is shown elsewhere is its share too, rolled up or not.
    for _ in range(2):
        query = {"from": f"{MONTH}-01", "to": str(NOON.date()), "groupBy": "day"}
        days = (await publisher.get("/admin/stats/banners", params=query)).json()["items"]
        assert [one["spendPaisa"] for one in days] == [100, 120]
        await writer.roll_up()
    answer = await publisher.get(
        f"/admin/publishers/{own['id']}/statement", params={"month": MONTH, "format": "csv"}
    )
    head, row, total = csv.reader(io.StringIO(answer.text))
    assert head[-1] == "Revenue"
    assert (row[1], row[-1]) == ("'=Aside", "2.20"), "no cell is a formula"
    assert total[-1] == "2.20"


async def test_a_share_counts_from_the_day_it_is_set(admin: Client, pool: Pool) -> None:
    publisher = await admin.make_publisher()
    path = f"/admin/publishers/{publisher['id']}"

    for percent in (70, 65):
        changed = await admin.patch(path, json={"revenueSharePercent": percent})
        assert changed.json()["revenueSharePercent"] == percent
    await admin.patch(path, json={"name": "Renamed"})

    kept = await pool.fetch("SELECT since, percent FROM publisher_shares")
    assert [row["percent"] for row in kept] == [65], "one a day, and the last counts"


@pytest.mark.parametrize("month", ["2026-13", "2026", "now", ""])
async def test_a_month_that_is_none_is_refused_by_name(admin: Client, month: str) -> None:
    publisher = await admin.make_publisher()

    answer = await admin.get(f"/admin/publishers/{publisher['id']}/statement", params={"month": month})

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"month"}


async def test_a_share_is_between_nothing_and_all(admin: Client) -> None:
    publisher = await admin.make_publisher()

    for percent in (-1, 101, 33.3):
        answer = await admin.patch(
            f"/admin/publishers/{publisher['id']}", json={"revenueSharePercent": percent}
        )
        assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"revenueSharePercent"}


async def test_a_refund_counts_in_the_month_in_which_it_is_made(
    admin: Client, publisher: Client, writer: EventWriter, pool: Pool
) -> None:
    """A month that was paid stays as it was, whatever is given back later."""
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement = await publisher.make_placement()
    banner, campaign = await admin.make_banner(), await make_paid_campaign(admin)
    a_month_ago = NOON.replace(month=NOON.month - 1)
    await set_share(pool, own, a_month_ago.date(), 70)
    await set_share(pool, own, NOON.date(), 50)
    offer = campaign, placement, banner
    earlier = await write_money(pool, a_row(offer, 1, 3_000_000, at=a_month_ago))
    later = await write_money(pool, a_row(offer, 2, 5_000_000, at=NOON))
    await writer.write(*[seen(banner, placement, campaign, at=at) for at in (a_month_ago, NOON)])
    before = await read(admin, own, month=f"{a_month_ago:%Y-%m}")
    assert before["totals"]["revenuePaisa"] == 210

    await give_back(pool, earlier, 3, 1_000_000, at=NOON)
    await give_back(pool, later, 4, 500_000, at=NOON)

    for _ in range(2):
        assert await read(admin, own, month=f"{a_month_ago:%Y-%m}") == before
        now = await read(admin, own)
        assert now["totals"]["chargedPaisa"] == 500 - 100 - 50
        assert now["totals"]["revenuePaisa"] == (500 - 50) // 2 - 70, (
            "what comes back is what was paid for it"
        )
        await writer.roll_up()
    days = await publisher.get(
        "/admin/stats/banners",
        params={"from": str(a_month_ago.date()), "to": str(NOON.date()), "groupBy": "day"},
    )
    assert [one["spendPaisa"] for one in days.json()["items"]] == [140, 225], "reports have it at its charge"


async def test_shares_are_rounded_once(admin: Client, publisher: Client, pool: Pool) -> None:
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement = await publisher.make_placement()
    banner, campaign = await admin.make_banner(), await make_paid_campaign(admin)
    await set_share(pool, own, EARLIER.date(), 50)
    for hour in range(4):
        await charge(pool, (campaign, placement, banner), 5_001, NOON - timedelta(hours=hour))

    assert (await read(admin, own))["totals"]["revenuePaisa"] == 1


async def test_campaigns_of_the_house_earn_a_publisher_nothing(
    admin: Client, publisher: Client, writer: EventWriter, pool: Pool
) -> None:
    """Nobody pays for them. What they are charged is the house's own reckoning."""
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement = await publisher.make_placement()
    banner, house, paid = (
        await admin.make_banner(),
        await admin.make_campaign(),
        await make_paid_campaign(admin),
    )
    await set_share(pool, own, EARLIER.date(), 50)
    of_house = a_row((house, placement, banner), 1, 7_000_000, at=NOON)
    await write_money(pool, of_house)
    await write_money(pool, a_row((paid, placement, banner), 2, 3_000_000, at=NOON))
    await writer.write(seen(banner, placement, house, at=NOON), seen(banner, placement, paid, at=NOON))
    query = {"from": str(NOON.date()), "to": str(NOON.date()), "groupBy": "campaign"}

    for _ in range(2):
        totals = (await read(admin, own))["totals"]
        assert (totals["chargedPaisa"], totals["revenuePaisa"], totals["impressions"]) == (300, 150, 2)
        assert (await read(publisher, own))["totals"]["revenuePaisa"] == 150
        own_report = (await publisher.get("/admin/stats/banners", params=query)).json()
        assert own_report["totals"]["spendPaisa"] == 150
        report = (await admin.get("/admin/stats/banners", params=query)).json()
        assert report["totals"]["spendPaisa"] == 1_000, "admins see what was charged"
        await writer.roll_up()
    await give_back(pool, of_house, 3, 1_000_000, at=NOON)
    assert (await read(admin, own))["totals"]["revenuePaisa"] == 150, "what was not earned is not taken back"


async def test_a_month_that_may_have_been_paid_keeps_what_the_house_was_charged(
    admin: Client, publisher: Client, writer: EventWriter, pool: Pool
) -> None:
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement, banner, house = (
        await publisher.make_placement(),
        await admin.make_banner(),
        await admin.make_campaign(),
    )
    month = NOON.date().replace(day=1)
    await pool.execute("UPDATE publishers SET house_paid_before = $1", month)
    a_month_ago = NOON.replace(month=NOON.month - 1)
    earlier = await write_money(pool, a_row((house, placement, banner), 1, 7_000_000, at=a_month_ago))
    await write_money(pool, a_row((house, placement, banner), 2, 5_000_000, at=NOON))
    await writer.write(*[seen(banner, placement, house, at=at) for at in (a_month_ago, NOON)])

    for _ in range(2):
        then = await read(admin, own, month=f"{a_month_ago:%Y-%m}")
        assert (then["totals"]["chargedPaisa"], then["totals"]["revenuePaisa"]) == (700, 700)
        assert (await read(admin, own))["totals"]["revenuePaisa"] == 0
        await writer.roll_up()
    await give_back(pool, earlier, 3, 1_000_000, at=NOON)
    assert (await read(admin, own))["totals"]["revenuePaisa"] == -100, "it was paid, and comes back"


async def test_publishers_that_were_there_are_paid_for_the_house_until_this_month(database_url: str) -> None:
    await go_back_to(database_url, "0048")
    add = "INSERT INTO publishers (public_id, name) VALUES ($1, $2)"
    async with open_pool(database_url, size_max=1) as pool:
        await pool.execute(add, UUID(int=1), "Old")

        await migrate.upgrade(database_url)

        await pool.execute(add, UUID(int=2), "New")
        found = await pool.fetch("SELECT name, house_paid_before FROM publishers")
        month = await pool.fetchval("SELECT date_trunc('month', now() AT TIME ZONE 'UTC')::date")
    assert dict(map(tuple, found)) == {"Old": month, "New": None}


async def test_the_lines_of_a_statement_add_up_to_its_total(
    admin: Client, publisher: Client, pool: Pool
) -> None:
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    banner, campaign = await admin.make_banner(), await make_paid_campaign(admin)
    await set_share(pool, own, EARLIER.date(), 50)
    for amount in (19_999, 19_998, 30_002, 20_000):
        await charge(pool, (campaign, await publisher.make_placement(), banner), amount, NOON)

    found = await read(admin, own)

    for field, total in (("chargedPaisa", 8), ("revenuePaisa", 4)):
        assert found["totals"][field] == total
        assert sum(one[field] for one in found["items"]) == total


async def test_a_statement_says_what_of_it_is_invalid(
    admin: Client, publisher: Client, writer: EventWriter
) -> None:
    [own] = (await publisher.get("/admin/publishers")).json()["items"]
    placement, banner = await publisher.make_placement(), await admin.make_banner()
    await writer.write(seen(banner, placement), seen(banner, placement, is_valid=False))

    found = await read(publisher, own)
    answer = await publisher.get(
        f"/admin/publishers/{own['id']}/statement", params={"month": MONTH, "format": "csv"}
    )

    assert (found["totals"]["impressions"], found["totals"]["invalidImpressions"]) == (2, 1)
    assert [one["invalidImpressions"] for one in found["items"]] == [1]
    row, _ = csv.DictReader(io.StringIO(answer.text))
    assert (row["Impressions"], row["Invalid impressions"], row["Invalid clicks"]) == ("2", "1", "0")


async def write_money(pool: Pool, row: MoneyRow) -> MoneyRow:
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter(ManualClock(NOON)).write(connection, [row])
    return row


def a_row(offer: tuple[Json, Json, Json], number: int, amount: int, *, at: datetime) -> MoneyRow:
    campaign, placement, banner = offer
    return a_charge(
        number,
        campaign_id=CampaignId(UUID(campaign["id"])),
        placement_id=PlacementId(UUID(placement["id"])),
        banner_id=BannerId(UUID(banner["id"])),
        advertiser_id=None,
        day=at.date(),
        at=at,
        amount=Micros(amount),
    )


async def give_back(pool: Pool, charged: MoneyRow, number: int, amount: int, *, at: datetime) -> None:
    hour = charged.at.replace(minute=0, second=0, microsecond=0)
    given = msgspec.structs.replace(
        charged,
        kind=MoneyKind.REFUND,
        amount=Micros(amount),
        at=at,
        second=int(hour.timestamp()),
        request_id=RequestId(UUID(int=number)),
        confirmed_by=None,
    )
    await pool.execute(
        """
        INSERT INTO refunds (public_id, campaign_id, correlation_id, amount_micros, reason, created_at)
        VALUES ($1, $2, $3, $4, 'Robots', $5)
        """,
        given.request_id,
        given.campaign_id,
        str(number),
        amount,
        at,
    )
    await write_money(pool, given)
