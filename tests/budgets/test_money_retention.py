"""Old charges are removed by day: totals, refunds and books stay, and nothing that is kept changes."""

import asyncio
import io
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

from adloom.budgets.messages import MoneyKind
from adloom.budgets.money import retention
from adloom.budgets.money.reconcile_store import reconcile_day
from adloom.budgets.money.retention import MoneyRetention
from adloom.core.clock import ManualClock
from adloom.core.ids import RequestId
from adloom.core.money import Micros
from adloom.ops.checks import money
from adloom.runtime.postgres import Pool
from adloom.stats.refunds.store import RefundRequest, choose_charges
from tests.budgets.test_money_store import (
    ADVERTISER,
    CAMPAIGN,
    NOON,
    TODAY,
    MoneyTables,
    a_charge,
    a_release,
    a_total,
)
from tests.events.catalog import insert_catalog

KEPT_DAYS = 40
OLD, EDGE, KEPT = (TODAY - timedelta(days=age) for age in (42, 41, 40))


@pytest.fixture
async def tables(pool: Pool) -> MoneyTables:
    """Days of which the oldest two are old, each with charges, a release and a refund."""
    await insert_catalog(pool)
    tables = MoneyTables(pool)
    for number, day in enumerate((OLD, EDGE, KEPT)):
        at = NOON - (TODAY - day)
        charges = [a_charge(100 * number + one, day=day, at=at) for one in range(5)]
        refund = a_charge(
            0,
            kind=MoneyKind.REFUND,
            day=day,
            at=at,
            second=int(at.timestamp()) // 3600 * 3600,
            amount=Micros(1_000),
            request_id=RequestId(UUID(int=77 + number)),
        )
        await tables.write(
            *charges,
            a_release(day=day, at=at),
            refund,
            a_total(24_000, day=day),
            a_total(24_000, kind="advertiser", of=ADVERTISER, day=day),
        )
    return tables


async def remove(pool: Pool, *, is_leader: bool = True, stop: asyncio.Event | None = None) -> int:
    old = MoneyRetention(pool, ManualClock(NOON), kept_days=KEPT_DAYS, is_leader=lambda: is_leader)
    await old.remove_old(stop or asyncio.Event())
    return old.rows


async def list_rows(tables: MoneyTables) -> list[tuple[Any, ...]]:
    return await tables.rows("day, kind, count(*)", "money_entries GROUP BY day, kind")


async def read_totals(tables: MoneyTables) -> list[object]:
    return [
        await tables.rows("kind, id, day, spent_micros", "spend_days"),
        await tables.rows("hour, charges, spent_micros, over_budget_clicks", "spend_hours"),
    ]


async def test_charges_before_the_kept_days_go_and_nothing_else(
    tables: MoneyTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_AT_ONCE_MAX", 4)  # A day takes several statements.
    totals = await read_totals(tables)

    assert await remove(tables.pool) == 2 * 6

    assert await list_rows(tables) == [
        (OLD, "refund", 1),
        (EDGE, "refund", 1),
        (KEPT, "charge", 5),
        (KEPT, "refund", 1),
        (KEPT, "release", 1),
    ]
    assert await read_totals(tables) == totals
    assert await remove(tables.pool) == 0


async def test_only_the_leader_removes(tables: MoneyTables) -> None:
    assert await remove(tables.pool, is_leader=False) == 0


async def test_a_clock_that_is_ahead_removes_no_day_that_the_database_keeps(tables: MoneyTables) -> None:
    tomorrow = datetime.now(NOON.tzinfo).date() + timedelta(days=1)
    at = NOON + (tomorrow - TODAY)
    await tables.write(
        a_charge(900, day=tomorrow, at=at),
        a_total(5_000, day=tomorrow),
        a_total(5_000, kind="advertiser", of=ADVERTISER, day=tomorrow),
    )
    ahead = MoneyRetention(
        tables.pool, ManualClock(NOON + timedelta(days=90_000)), kept_days=KEPT_DAYS, is_leader=lambda: True
    )

    await ahead.remove_old(asyncio.Event())

    assert (tomorrow, "charge", 1) in await list_rows(tables)


async def test_a_day_whose_books_disagree_stays(tables: MoneyTables) -> None:
    await tables.pool.execute(
        "UPDATE spend_days SET spent_micros = 1 WHERE day = $1 AND kind = 'campaign'", OLD
    )

    await remove(tables.pool)

    days = {day for day, kind, _ in await list_rows(tables) if kind == "charge"}
    assert days == {OLD, KEPT}


async def test_days_that_stay_hold_back_no_others(
    tables: MoneyTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "DAYS_AT_ONCE_MAX", 1)
    await tables.pool.execute(
        "UPDATE spend_days SET spent_micros = 1 WHERE day = $1 AND kind = 'campaign'", OLD
    )

    assert await remove(tables.pool) == 6


async def test_what_was_interrupted_goes_on(tables: MoneyTables, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = asyncio.Event()

    async def stop_after_a_statement(_seconds: float, stop: asyncio.Event) -> None:
        stop.set()

    with monkeypatch.context() as patched:
        patched.setattr(retention, "ROWS_AT_ONCE_MAX", 2)
        patched.setattr(retention, "pause", stop_after_a_statement)
        assert await remove(tables.pool, stop=stop) == 2

    assert await remove(tables.pool) == 2 * 6 - 2


async def test_the_books_of_a_removed_day_are_shown_as_they_were(
    tables: MoneyTables, database_url: str
) -> None:
    async with tables.pool.acquire() as connection:
        before = await reconcile_day(connection, OLD)
    await remove(tables.pool)
    output = io.StringIO()

    is_well = await money.prove(database_url, OLD, Console(file=output, width=200))

    said = " ".join(output.getvalue().split())
    assert before.is_balanced
    assert is_well
    assert "bill 0.024000 5 charges given back 0.001000" in said
    assert "These are the books of 2026-11-15, when the charges of that day were removed" in said


async def test_nothing_of_a_removed_day_can_be_given_back(tables: MoneyTables) -> None:
    wanted = RefundRequest(
        id=RequestId(UUID(int=500)),
        campaign_id=CAMPAIGN,
        correlation_id="all",
        amount=Micros(72_000),
        reason="",
        day=None,
        placement_id=None,
        created_at=NOON,
    )
    async with tables.pool.acquire() as connection:
        _, missing_before = await choose_charges(connection, wanted, ADVERTISER)
        await remove(tables.pool)
        parts, missing = await choose_charges(connection, wanted, ADVERTISER)

    assert missing_before == 0
    assert missing == 48_000
    assert {part.day for part in parts} == {KEPT}
