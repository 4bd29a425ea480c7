"""The money ledger: rows are only added, each offer once, and totals of days are absolute."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest

from adloom.budgets.messages import ChargeKind, DayRefund, DayTotal, MoneyKind, MoneyRow, WaitingOffer
from adloom.budgets.money.store import MoneyWriter
from adloom.core.clock import ManualClock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.ports import DecodedEntry
from adloom.events.tables.store import EventTables
from adloom.runtime.actors.actor import StateRejectedError
from adloom.runtime.postgres import Pool
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT, a_click
from tests.events.catalog import insert_catalog

NOON = datetime(2026, 11, 15, 12, 30, 1, tzinfo=UTC)
TODAY = date(2026, 11, 15)
ADVERTISER = AdvertiserId(UUID(int=5))


def a_charge(number: int = 1, **fields: Any) -> MoneyRow:
    return msgspec.structs.replace(
        MoneyRow(
            kind=MoneyKind.CHARGE,
            campaign_id=CAMPAIGN,
            advertiser_id=ADVERTISER,
            day=TODAY,
            window=1,
            amount=Micros(5_000),
            at=NOON,
            lease=1_794_728_276,
            second=int(NOON.timestamp()),
            request_id=RequestId(UUID(int=number)),
            slot=0,
            confirmed_by=ChargeKind.IMPRESSION,
            banner_id=BANNER,
            placement_id=PLACEMENT,
        ),
        **fields,
    )


def a_release(**fields: Any) -> MoneyRow:
    nothing: dict[str, Any] = dict.fromkeys(
        ("request_id", "slot", "confirmed_by", "banner_id", "placement_id")
    )
    return msgspec.structs.replace(a_charge(kind=MoneyKind.RELEASE), **{**nothing, **fields})


def a_total(spent: int, *, kind: str = "campaign", of: UUID = CAMPAIGN, day: date = TODAY) -> DayTotal:
    return DayTotal(kind=kind, id=CampaignId(of), day=day, spent=Micros(spent))


class MoneyTables:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.writer = MoneyWriter(ManualClock(NOON))

    async def write(self, *records: msgspec.Struct) -> None:
        async with self.pool.acquire() as connection, connection.transaction():
            await self.writer.write(connection, records)

    async def rows(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        rows = await self.pool.fetch(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3")  # noqa: S608 - constants of the tests
        return [tuple(row) for row in rows]


@pytest.fixture
async def tables(pool: Pool) -> MoneyTables:
    await insert_catalog(pool)
    return MoneyTables(pool)


async def test_a_charge_is_written_with_all_its_fields(tables: MoneyTables) -> None:
    await tables.write(a_charge())

    [row] = await tables.pool.fetch("SELECT * FROM money_entries")
    assert dict(row) == {
        "id": 1,
        "kind": "charge",
        "campaign_id": CAMPAIGN,
        "advertiser_id": ADVERTISER,
        "day": TODAY,
        "budget_window": 1,
        "amount_micros": 5_000,
        "at": NOON,
        "lease": 1_794_728_276,
        "second": int(NOON.timestamp()),
        "request_id": UUID(int=1),
        "slot": 0,
        "confirmed_by": "impression",
        "banner_id": BANNER,
        "placement_id": PLACEMENT,
    }


async def test_charges_releases_and_unbilled_offers_are_written_together_and_counted(
    tables: MoneyTables,
) -> None:
    await tables.write(
        a_charge(1),
        a_charge(2, advertiser_id=None),
        a_release(),
        a_release(),
        a_charge(3, kind=MoneyKind.UNBILLED),
    )

    rows = await tables.rows("kind, count(*), sum(amount_micros)", "money_entries GROUP BY kind")
    assert rows == [("charge", 2, 10_000), ("release", 2, 10_000), ("unbilled", 1, 5_000)]
    assert +tables.writer.rows == {"charge": 2, "release": 2, "unbilled": 1}
    assert tables.writer.charged_micros == 10_000


@pytest.mark.parametrize(
    "again", [a_charge(), a_charge(kind=MoneyKind.UNBILLED), a_charge(campaign_id=CampaignId(UUID(int=9)))]
)
async def test_a_repeated_offer_is_refused_together_with_its_whole_batch(
    tables: MoneyTables, again: MoneyRow
) -> None:
    await tables.write(a_charge(), a_total(5_000))

    with pytest.raises(asyncpg.UniqueViolationError):
        await tables.write(a_charge(2), again, a_total(15_000))

    assert await tables.rows("request_id, slot, kind", "money_entries") == [(UUID(int=1), 0, "charge")]
    assert await tables.rows("day, spent_micros, kind", "spend_days") == [(TODAY, 5_000, "campaign")]


async def test_a_click_that_waits_although_it_is_charged_is_refused(tables: MoneyTables) -> None:
    charge = a_charge(1)
    assert charge.request_id is not None
    assert charge.slot is not None
    waiting = WaitingOffer(request_id=charge.request_id, slot=charge.slot)

    await tables.write(waiting, charge)  # It waits and is charged in one transaction.
    await tables.write(WaitingOffer(request_id=charge.request_id, slot=charge.slot + 1))
    with pytest.raises(StateRejectedError):
        await tables.write(waiting)
    with pytest.raises(StateRejectedError):
        await tables.write(a_charge(2), msgspec.structs.replace(waiting, request_id=a_charge(2).request_id))


async def test_different_slots_of_a_request_are_different_offers(tables: MoneyTables) -> None:
    await tables.write(a_charge(), a_charge(slot=1))

    assert len(await tables.rows("request_id, slot, kind", "money_entries")) == 2


async def test_writing_the_same_totals_again_changes_nothing(tables: MoneyTables) -> None:
    yesterday = TODAY - timedelta(days=1)
    payer = a_total(9, kind="advertiser", of=ADVERTISER)

    for _ in range(2):
        await tables.write(a_total(1), payer, a_total(2), a_total(7, day=yesterday), a_total(3))

    assert await tables.rows("kind, day, spent_micros", "spend_days") == [
        ("advertiser", TODAY, 9),
        ("campaign", yesterday, 7),
        ("campaign", TODAY, 3),
    ]


async def test_charges_are_summed_by_hour_for_statistics(tables: MoneyTables) -> None:
    await tables.write(
        a_charge(1), a_charge(2, day=TODAY + timedelta(days=1)), a_charge(3, kind=MoneyKind.UNBILLED)
    )
    await tables.write(a_charge(4), a_charge(5, at=NOON + timedelta(hours=1)), a_release())

    assert await tables.rows("hour, charges, spent_micros", "spend_hours") == [
        (NOON.replace(minute=0, second=0), 3, 15_000),
        (NOON.replace(minute=0, second=0) + timedelta(hours=1), 1, 5_000),
    ]


async def test_a_charge_of_a_deleted_banner_is_in_the_ledger_but_not_in_the_hours(
    tables: MoneyTables,
) -> None:
    await tables.write(a_charge(banner_id=BannerId(UUID(int=1)), placement_id=PlacementId(UUID(int=2))))

    assert await tables.rows("hour, charges, spent_micros", "spend_hours") == []
    assert len(await tables.rows("request_id, slot, kind", "money_entries")) == 1


async def test_a_record_of_another_type_is_an_error(tables: MoneyTables) -> None:
    class Other(msgspec.Struct):
        pass

    with pytest.raises(TypeError, match="Other"):
        await tables.write(Other())


async def test_a_refund_takes_from_the_hour_the_statistics_and_the_days_that_were_charged(
    tables: MoneyTables,
) -> None:
    hour = NOON.replace(minute=0, second=0)
    yesterday = TODAY - timedelta(days=1)
    await tables.write(a_charge(1), a_charge(2), a_total(10_000), a_total(7_000, day=yesterday))
    await tables.pool.execute(
        """
        INSERT INTO banner_stats (banner_id, placement_id, campaign_id, stat_date, spend_micros, spend_paisa)
        SELECT banner_id, placement_id, campaign_id, $1, spent_micros, 1 FROM spend_hours
        """,
        TODAY,
    )

    await tables.write(
        a_charge(
            9,
            kind=MoneyKind.REFUND,
            amount=Micros(3_000),
            second=int(hour.timestamp()),
            at=NOON + timedelta(days=2),
            confirmed_by=None,
        ),
        a_total(7_000),
        DayRefund(kind="campaign", id=CAMPAIGN, day=yesterday, amount=Micros(2_000)),
    )

    assert await tables.rows("hour, charges, spent_micros", "spend_hours") == [(hour, 2, 7_000)]
    assert await tables.rows("stat_date, spend_micros, spend_paisa", "banner_stats") == [(TODAY, 7_000, 0)]
    assert await tables.rows("day, kind, spent_micros", "spend_days") == [
        (yesterday, "campaign", 5_000),
        (TODAY, "campaign", 7_000),
    ]


async def test_more_than_an_hour_was_charged_is_never_given_back(tables: MoneyTables) -> None:
    await tables.write(a_charge(1))
    hour = int(NOON.replace(minute=0, second=0).timestamp())

    with pytest.raises(asyncpg.CheckViolationError):
        await tables.write(a_charge(9, kind=MoneyKind.REFUND, amount=Micros(5_001), second=hour))

    assert await tables.rows("kind, amount_micros, slot", "money_entries") == [("charge", 5_000, 0)]


async def test_a_click_that_did_not_fit_the_budget_is_marked_and_counted(tables: MoneyTables) -> None:
    offer: dict[str, Any] = {
        "slot": 0,
        "occurred_at": NOON,
        "received_at": NOON,
        "offered_at": int(NOON.timestamp()),
    }
    clicks = [
        a_click("free", request_id=RequestId(UUID(int=1)), **offer),
        a_click("again", request_id=RequestId(UUID(int=1)), **offer),
        a_click("charged", request_id=RequestId(UUID(int=2)), **offer),
    ]
    events = EventTables(tables.pool)
    records = [DecodedEntry(f"1-{number}", event) for number, event in enumerate(clicks, start=1)]
    await events.commit(records, after=await events.read_cursor(), cursor="1-3")
    await tables.pool.execute(
        "UPDATE events.banner_clicks SET is_valid = true, marks = array_remove(marks, 'click_without_impression')"
    )

    await tables.write(a_charge(1, kind=MoneyKind.OVER_BUDGET), a_charge(2))

    rows = await tables.rows("correlation_id, marks, is_valid", "events.banner_clicks")
    assert rows == [
        ("again", ["second_click"], True),
        ("charged", [], True),
        ("free", ["over_budget"], True),
    ]
    assert await tables.rows("charges, spent_micros, over_budget_clicks", "spend_hours") == [(1, 5_000, 1)]
