"""The money of a day: charges, campaign totals and advertiser totals agree, or the doctor names the difference."""

import asyncio
import io
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from adloom.budgets.addresses import OWNER_KEY
from adloom.budgets.messages import DayTotal, MoneyKind, MoneyRow
from adloom.budgets.money.comparison import LedgerCheck, list_open_days, settle
from adloom.budgets.money.reconcile_store import DIFFERENCES_MAX, DayReconciliation, SpendDifference
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
ONE, OTHER, WITHOUT_ADVERTISER = (CampaignId(UUID(int=number)) for number in (1, 2, 3))
PAYER = AdvertiserId(UUID(int=9))


def an_entry(number: int, campaign: CampaignId, amount: int, **fields: Any) -> MoneyRow:
    return msgspec.structs.replace(
        MoneyRow(
            kind=MoneyKind.CHARGE,
            campaign_id=campaign,
            advertiser_id=None if campaign == WITHOUT_ADVERTISER else PAYER,
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


RECORDS: tuple[msgspec.Struct, ...] = (
    an_entry(1, ONE, 1_000_000),
    an_entry(2, ONE, 500_001),
    an_entry(3, OTHER, 2_000_000),
    an_entry(4, WITHOUT_ADVERTISER, 70),
    an_entry(5, OTHER, 9_000_000, kind=MoneyKind.UNBILLED),
    an_entry(6, OTHER, 4_000_000, kind=MoneyKind.RELEASE, request_id=None, slot=None),
    an_entry(7, ONE, 1, day=TODAY - timedelta(days=1)),
    a_total(ONE, 1_500_001),
    a_total(OTHER, 2_000_000),
    a_total(WITHOUT_ADVERTISER, 70),
    a_total(PAYER, 3_500_001, kind="advertiser"),
    a_total(ONE, 1, day=TODAY - timedelta(days=1)),
    a_total(PAYER, 1, kind="advertiser", day=TODAY - timedelta(days=1)),
)


async def write(pool: Pool, *records: msgspec.Struct) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await MoneyWriter(ManualClock(NOON)).write(connection, records)


async def prove(database_url: str, *, seconds: float = 0.01) -> tuple[bool, str]:
    output = io.StringIO()
    is_well = await money.prove(database_url, TODAY, Console(file=output, width=200), retry_seconds=seconds)
    return is_well, output.getvalue()


async def check(pool: Pool, now: datetime = NOON) -> Finding:
    async with pool.acquire() as connection:
        return await money.check_money_ledger(connection, ManualClock(now), retry_seconds=0.01)


async def test_figures_that_agree_are_shown_with_all_decimal_places(pool: Pool, database_url: str) -> None:
    await write(pool, *RECORDS)

    is_well, output = await prove(database_url)

    assert is_well
    assert [" ".join(line.split()) for line in output.splitlines()] == [
        "Money of 2026-11-15, in currency units",
        "bill 3.500071 4 charges",
        "campaigns 3.500071 3 of them were charged",
        "advertisers 3.500001 1 of them were charged",
        "no advertiser 0.000070 campaigns of the house's own",
        "not billed 9.000000 confirmed when nothing was left",
        "came back 4.000000 holds that nobody confirmed",
        "The books agree.",
    ]


async def test_a_day_without_charges_agrees(database_url: str) -> None:
    assert (await prove(database_url))[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            "DELETE FROM money_entries WHERE amount_micros = 500001",
            f"campaign {ONE}: charged 1.000000, says 1.500001, 0.500001 apart",
        ),
        (
            "UPDATE spend_days SET spent_micros = 1 WHERE kind = 'campaign' AND spent_micros = 70",
            f"campaign {WITHOUT_ADVERTISER}: charged 0.000070, says 0.000001, -0.000069 apart",
        ),
        (
            "DELETE FROM spend_days WHERE kind = 'advertiser'",
            f"advertiser {PAYER}: charged 3.500001, says 0.000000, -3.500001 apart",
        ),
        # Two errors that cancel each other out are found, too.
        (
            "UPDATE spend_days SET spent_micros = 3500001 - spent_micros WHERE kind = 'campaign' AND spent_micros > 70",
            f"campaign {OTHER}: charged 2.000000, says 1.500001",
        ),
    ],
)
async def test_an_account_that_disagrees_is_named_and_the_doctor_fails(
    pool: Pool, database_url: str, change: str, named: str
) -> None:
    await write(pool, *RECORDS)
    await pool.execute(change)

    is_well, output = await prove(database_url)

    assert not is_well
    assert named in output
    assert "The books do not agree." in output


async def test_the_command_fails_with_exit_code_1_if_the_books_disagree(
    pool: Pool, database_url: str
) -> None:
    await write(pool, *RECORDS)

    async def run() -> int:
        words = ["doctor", "--money", "--day", TODAY.isoformat()]
        environment = {"DATABASE_URL": database_url}
        return (await asyncio.to_thread(CliRunner().invoke, cli.app, words, env=environment)).exit_code

    assert await run() == 0
    await pool.execute("DELETE FROM money_entries WHERE amount_micros = 500001")
    assert await run() == 1


async def test_pending_totals_are_waited_for(pool: Pool, database_url: str) -> None:
    await write(pool, *RECORDS[:-3])
    proving = asyncio.ensure_future(prove(database_url, seconds=1.5))
    await asyncio.sleep(0.1)
    await write(pool, *RECORDS[-3:])

    assert (await proving)[0]


async def test_the_doctor_checks_every_day_that_is_today_in_some_time_zone(pool: Pool) -> None:
    await write(pool, *RECORDS)

    well = await check(pool)
    await pool.execute("DELETE FROM spend_days WHERE day = $1", TODAY - timedelta(days=1))
    wrong = await check(pool)
    later = await check(pool, NOON + timedelta(days=3))

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


def test_a_day_is_open_while_it_is_today_in_some_time_zone() -> None:
    hours = [NOON + timedelta(hours=hour) for hour in (-12, -1, 0, 11)]

    assert [[day.day for day in list_open_days(now)] for now in hours] == [
        [14, 15],
        [14, 15, 16],
        [15, 16],
        [15, 16],
    ]


async def test_the_leading_worker_compares_the_books_and_says_which_days_disagree(pool: Pool) -> None:
    await write(pool, *RECORDS)
    books = LedgerCheck(pool, ManualClock(NOON), is_leader=lambda: True, retry_seconds=0.01)
    await books.compare()
    well = books.wrong_days, books.problem
    await pool.execute("DELETE FROM money_entries WHERE amount_micros = 500001")
    # A day that is over everywhere is not looked at.
    await pool.execute("DELETE FROM spend_days WHERE day = $1", TODAY - timedelta(days=1))

    await books.compare()

    assert well == ((), None)
    assert books.wrong_days == (TODAY,)
    assert books.problem == "the books of 2026-11-15 do not agree"
    assert (books.comparisons, books.seconds > 0) == (2, True)


async def test_a_missing_money_table_is_a_warning(pool: Pool) -> None:
    await pool.execute("DROP TABLE money_entries")

    assert (await check(pool)).state is FindingState.WARN


async def test_the_owner_of_the_budgets_is_named(valkey: Valkey) -> None:
    without_owner = await money.check_owner(valkey)
    await valkey.set(OWNER_KEY, "worker@host 0190")

    assert without_owner.state is FindingState.WARN
    assert ((await money.check_owner(valkey)).state, (await money.check_owner(valkey)).detail) == (
        FindingState.OK,
        "worker@host",
    )


def a_look(charged: dict[int, int], heard: dict[int, int]) -> DayReconciliation:
    """Return a day in which campaigns of some advertisers were charged, and what these have heard of it."""
    bill = Micros(sum(charged.values()))
    return DayReconciliation(
        day=TODAY,
        charges=1,
        bill=bill,
        campaigns=1,
        campaigns_reported=bill,
        advertisers=len(charged),
        advertisers_reported=Micros(sum(heard.values())),
        without_advertiser=Micros(0),
        unbilled=Micros(0),
        released=Micros(0),
        differences=tuple(
            SpendDifference(
                kind="advertiser", id=UUID(int=of), charged=Micros(spent), reported=Micros(heard[of])
            )
            for of, spent in charged.items()
            if spent != heard[of]
        ),
    )


def test_advertisers_agree_if_each_does_at_some_moment() -> None:
    first = a_look({1: 10, 2: 10}, {1: 10, 2: 8})
    second = a_look({1: 15, 2: 16}, {1: 12, 2: 16})

    found = settle([first, second])

    assert not first.is_balanced
    assert not second.is_balanced
    assert (found.is_balanced, found.differences, found.arriving) == (True, (), 3)
    # What one of them never heard of is found nevertheless.
    lost = settle([first, a_look({1: 15, 2: 16}, {1: 12, 2: 14})])
    assert (lost.is_balanced, [one.id.int for one in lost.differences], lost.arriving) == (False, [2], 3)


def test_an_incomplete_list_of_differences_says_nothing_about_others() -> None:
    first = a_look(dict.fromkeys(range(DIFFERENCES_MAX), 2), dict.fromkeys(range(DIFFERENCES_MAX), 1))
    last = a_look({DIFFERENCES_MAX: 2}, {DIFFERENCES_MAX: 1})

    assert settle([first, last]) == last


def test_equal_totals_do_not_hide_a_difference() -> None:
    difference = SpendDifference(kind="campaign", id=ONE, charged=Micros(1), reported=Micros(2))
    reconciliation = DayReconciliation(
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

    assert reconciliation.is_balanced
    assert not msgspec.structs.replace(reconciliation, differences=(difference,)).is_balanced
    assert not msgspec.structs.replace(reconciliation, advertisers_reported=Micros(1)).is_balanced


def test_the_command_exits_with_0_on_agreement_and_2_without_its_money_option(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", services.template_url)

    well = CliRunner().invoke(cli.app, ["doctor", "--money", "--day", "2026-11-15"])
    wrong = CliRunner().invoke(cli.app, ["doctor", "--day", "2026-11-15"])

    assert (well.exit_code, "The books agree." in well.output) == (0, True)
    assert wrong.exit_code == 2
