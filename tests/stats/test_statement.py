"""The monthly statement of a publisher, and its share of what is charged."""

import csv
import io
from datetime import date, datetime, timedelta

import pytest

from adloom.runtime.postgres import Pool
from tests.stats.event_writer import EventWriter, seen
from tests.support.builders import NOON, Json
from tests.support.control import Client, error_fields, problem

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
    banner, campaign = await admin.make_banner(), await admin.make_campaign()
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
    assert to_house["totals"] == {"impressions": 1, "clicks": 0, "chargedPaisa": 300, "revenuePaisa": 220}
    assert to_publisher["totals"] == {
        "impressions": 1,
        "clicks": 0,
        "chargedPaisa": None,
        "revenuePaisa": 220,
    }
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


async def test_a_publisher_sees_no_statement_but_its_own(admin: Client, publisher: Client) -> None:
    other = await admin.make_publisher()

    answer = await publisher.get(f"/admin/publishers/{other['id']}/statement", params={"month": MONTH})

    assert answer.status_code == 404


async def test_a_share_is_between_nothing_and_all(admin: Client) -> None:
    publisher = await admin.make_publisher()

    for percent in (-1, 101, 33.3):
        answer = await admin.patch(
            f"/admin/publishers/{publisher['id']}", json={"revenueSharePercent": percent}
        )
        assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"revenueSharePercent"}
