"""The books of a day: the bill is what was charged, what campaigns say and what advertisers say, or the doctor names who differs."""

import asyncio
import io
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from adloom.budgets.leader import OWNER_KEY
from adloom.budgets.messages import DayTotal, MoneyKind, MoneyRow
from adloom.budgets.money.reconcile_store import DayReconciliation, SpendDifference
from adloom.budgets.money.store import MoneyWriter
from adloom.cli import main as cli
from adloom.core.clock import ManualClock
from adloom.core.ids import AdvertiserId, CampaignId, RequestId
from adloom.core.money import Micros
from adloom.ops.checks import money
from adloom.ops.checks.finding import Finding, FindingState
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TODAY = date(2026, 11, 15)
ONE, OTHER, STAFF = (CampaignId(UUID(int=number)) for number in (1, 2, 3))
PAYER = AdvertiserId(UUID(int=9))


def an_entry(number: int, campaign: CampaignId, amount: int, **fields: Any) -> MoneyRow:
    return msgspec.structs.replace(
        MoneyRow(
            kind=MoneyKind.CHARGE,
            campaign_id=campaign,
            advertiser_id=None if campaign == STAFF else PAYER,
            day=TODAY,
            window=1,
            amount=Micros(amount),
            at=NOON,
            lease=0,
            second=0,
            request_id=RequestId(UUID(int=number)),
            slot=0,
        ),
        **fields,
    )


def a_total(of: UUID, spent: int, *, kind: str = "campaign", day: date = TODAY) -> DayTotal:
    return DayTotal(kind=kind, id=CampaignId(of), day=day, spent=Micros(spent))


BOOKS: tuple[msgspec.Struct, ...] = (
    an_entry(1, ONE, 1_000_000),
    an_entry(2, ONE, 500_001),
    an_entry(3, OTHER, 2_000_000),
    an_entry(4, STAFF, 70),
    an_entry(5, OTHER, 9_000_000, kind=MoneyKind.UNBILLED),
    an_entry(6, OTHER, 4_000_000, kind=MoneyKind.RELEASE, request_id=None, slot=None),
    an_entry(7, ONE, 1, day=TODAY - timedelta(days=1)),
    a_total(ONE, 1_500_001),
    a_total(OTHER, 2_000_000),
    a_total(STAFF, 70),
    a_total(PAYER, 3_500_001, kind="advertiser"),
    a_total(ONE, 1, day=TODAY - timedelta(days=1)),
    a_total(PAYER, 1, kind="advertiser", day=TODAY - timedelta(days=1)),
)


async def write(pool: Pool, *records: msgspec.Struct) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter().write(connection, records)


async def proven(database_url: str, *, seconds: float = 0.01) -> tuple[bool, str]:
    said = io.StringIO()
    is_well = await money.prove(
        database_url, TODAY, Console(file=said, width=200), look_again_seconds=seconds
    )
    return is_well, said.getvalue()


async def looked_at(pool: Pool, now: datetime = NOON) -> Finding:
    async with pool.acquire() as connection:
        return await money.check_books(connection, ManualClock(now), look_again_seconds=0.01)


async def test_books_that_agree_are_shown_with_every_place(pool: Pool, database_url: str) -> None:
    await write(pool, *BOOKS)

    is_well, said = await proven(database_url)

    assert is_well
    assert [" ".join(line.split()) for line in said.splitlines()] == [
        "Money of 2026-11-15, in currency units",
        "bill 3.500071 4 charges",
        "campaigns 3.500071 3 of them were charged",
        "advertisers 3.500001 1 of them were charged",
        "no advertiser 0.000070 campaigns of the house's own",
        "not billed 9.000000 confirmed when nothing was left",
        "came back 4.000000 holds that nobody confirmed",
        "The books agree.",
    ]


async def test_a_day_on_which_nothing_happened_agrees(database_url: str) -> None:
    assert (await proven(database_url))[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            "DELETE FROM money_entries WHERE amount_micros = 500001",
            f"campaign {ONE}: charged 1.000000, says 1.500001, 0.500001 apart",
        ),
        (
            "UPDATE spend_days SET spent_micros = 1 WHERE kind = 'campaign' AND spent_micros = 70",
            f"campaign {STAFF}: charged 0.000070, says 0.000001, -0.000069 apart",
        ),
        (
            "DELETE FROM spend_days WHERE kind = 'advertiser'",
            f"advertiser {PAYER}: charged 3.500001, says 0.000000, -3.500001 apart",
        ),
        # Two faults that make up for each other are found all the same.
        (
            "UPDATE spend_days SET spent_micros = 3500001 - spent_micros WHERE kind = 'campaign' AND spent_micros > 70",
            f"campaign {OTHER}: charged 2.000000, says 1.500001",
        ),
    ],
)
async def test_an_account_that_disagrees_is_named_and_the_doctor_fails(
    pool: Pool, database_url: str, change: str, named: str
) -> None:
    await write(pool, *BOOKS)
    await pool.execute(change)

    is_well, said = await proven(database_url)

    assert not is_well
    assert named in said
    assert "The books do not agree." in said


async def test_what_is_on_its_way_is_waited_for(pool: Pool, database_url: str) -> None:
    await write(pool, *BOOKS[:-3])
    proving = asyncio.ensure_future(proven(database_url, seconds=0.3))
    await asyncio.sleep(0.1)
    await write(pool, *BOOKS[-3:])

    assert (await proving)[0]


async def test_the_ordinary_doctor_checks_the_days_that_are_today_in_some_time_zone(pool: Pool) -> None:
    await write(pool, *BOOKS)

    well = await looked_at(pool)
    await pool.execute("DELETE FROM spend_days WHERE day = $1", TODAY - timedelta(days=1))
    wrong = await looked_at(pool)
    later = await looked_at(pool, NOON + timedelta(days=3))

    assert (well.state, well.detail) == (
        FindingState.OK,
        "the books agree: 0.000001 on 2026-11-14, 3.500071 on 2026-11-15",
    )
    assert (wrong.state, "2026-11-14" in wrong.detail, "--money --day 2026-11-14" in wrong.remedy) == (
        FindingState.FAIL,
        True,
        True,
    )
    assert (later.state, later.detail) == (FindingState.OK, "nothing was charged in these days")


async def test_a_database_without_books_is_no_failure_of_the_books(pool: Pool) -> None:
    await pool.execute("DROP TABLE money_entries")

    assert (await looked_at(pool)).state is FindingState.WARN


async def test_the_worker_of_the_budgets_is_named(valkey: Valkey) -> None:
    nobody = await money.check_owner(valkey)
    await valkey.set(OWNER_KEY, "worker@host 0190")

    assert nobody.state is FindingState.WARN
    assert ((await money.check_owner(valkey)).state, (await money.check_owner(valkey)).detail) == (
        FindingState.OK,
        "worker@host",
    )


def test_totals_that_are_equal_do_not_hide_a_difference() -> None:
    difference = SpendDifference(kind="campaign", id=ONE, charged=Micros(1), reported=Micros(2))
    books = DayReconciliation(
        day=TODAY,
        charges=1,
        bill=Micros(1),
        campaigns=1,
        campaigns_reported=Micros(1),
        advertisers=0,
        advertisers_reported=Micros(0),
        without_advertiser=Micros(1),
        unbilled=Micros(0),
        released=Micros(0),
        differences=(),
    )

    assert books.is_balanced
    assert not msgspec.structs.replace(books, differences=(difference,)).is_balanced
    assert not msgspec.structs.replace(books, advertisers_reported=Micros(1)).is_balanced


def test_the_command_ends_with_one_where_the_books_do_not_agree(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", services.template_url)

    well = CliRunner().invoke(cli.app, ["doctor", "--money", "--day", "2026-11-15"])
    wrong = CliRunner().invoke(cli.app, ["doctor", "--day", "2026-11-15"])

    assert (well.exit_code, "The books agree." in well.output) == (0, True)
    assert wrong.exit_code == 2
