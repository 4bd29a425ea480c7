"""Money: whether the bill of a day is what was charged, what campaigns say, and what advertisers say."""

from datetime import date, timedelta
from typing import Final, cast

import asyncpg
from rich.console import Console
from rich.table import Table

from adloom.budgets.addresses import OWNER_KEY
from adloom.budgets.money.comparison import RETRY_SECONDS, reconcile_settled
from adloom.budgets.money.reconcile_store import DayReconciliation
from adloom.budgets.money.retention import find_removed_day
from adloom.core.clock import Clock
from adloom.core.errors import describe_error
from adloom.core.money import MICROS_PER_UNIT
from adloom.ops.checks import database
from adloom.ops.checks.finding import Finding, fail, report_ok, warn
from adloom.runtime.postgres import Connection
from adloom.runtime.schema import raise_if_unusable
from adloom.runtime.valkey import VALKEY_AWAY, Valkey

ONE_DAY: Final = timedelta(days=1)


async def check_money_ledger(
    connection: Connection, clock: Clock, *, retry_seconds: float = RETRY_SECONDS
) -> Finding:
    """Check yesterday, today and tomorrow (UTC): each is today in some time zone."""
    today = clock.now().date()
    try:
        found = [
            await reconcile_settled(connection, today + number * ONE_DAY, retry_seconds=retry_seconds)
            for number in (-1, 0, 1)
        ]
    except asyncpg.UndefinedTableError:
        return warn("Money", "there are no books yet", "run `adloom migrate`")
    except TimeoutError:
        return warn("Money", "the books are too long to be read on the way", "run `adloom doctor --money`")
    return judge_money_ledger(found)


def judge_money_ledger(found: list[DayReconciliation]) -> Finding:
    wrong = [str(one.day) for one in found if not one.is_balanced]
    if wrong:
        return fail(
            "Money",
            f"the books of {', '.join(wrong)} do not agree",
            f"see `adloom doctor --money --day {wrong[0]}`, and do not bill that day until they agree",
        )
    days = [f"{_write_units(one.bill)} on {one.day}" for one in found if one.charges]
    return report_ok(
        "Money", f"the books agree: {', '.join(days)}" if days else "nothing was charged in these days"
    )


async def check_owner(valkey: Valkey) -> Finding:
    """Check that a worker runs the budget actors."""
    try:
        # The stubs know every decoding; ours answers bytes.
        holder = cast("bytes | None", await valkey.get(OWNER_KEY))
    except VALKEY_AWAY as error:
        return fail("Budgets", describe_error(error), "fix Valkey first")
    if holder is None:
        return warn("Budgets", "no worker keeps the budgets", "start `adloom worker`, or see what it logs")
    return report_ok("Budgets", holder.decode().partition(" ")[0])


async def prove(
    database_url: str, day: date, console: Console, *, retry_seconds: float = RETRY_SECONDS
) -> bool:
    """Print the reconciliation of a day, and return whether it balances."""
    with raise_if_unusable(database_url):
        connection = await database.connect(database_url)
        try:
            removed = await find_removed_day(connection, day)
            found = (
                removed.books
                if removed
                else await reconcile_settled(connection, day, retry_seconds=retry_seconds)
            )
        finally:
            await connection.close()
    show(found, console)
    if removed is not None:
        console.print(
            f"These are the books of {removed.removed_at:%Y-%m-%d}, when the charges of that day were removed "
            "(ADLOOM_MONEY_RETENTION_DAYS).",
            highlight=False,
            soft_wrap=True,
        )
    return found.is_balanced


def show(found: DayReconciliation, console: Console) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    table.add_row("bill", _write_units(found.bill), f"{found.charges:,} charges")
    if found.refunded:
        table.add_row("given back", _write_units(found.refunded), "refunds, which the bill is without")
    table.add_row(
        "campaigns", _write_units(found.campaigns_reported), f"{found.campaigns:,} of them were charged"
    )
    table.add_row(
        "advertisers", _write_units(found.advertisers_reported), f"{found.advertisers:,} of them were charged"
    )
    if found.arriving:
        table.add_row("on its way", _write_units(found.arriving), "what advertisers hear of in a moment")
    table.add_row("no advertiser", _write_units(found.without_advertiser), "campaigns of the house's own")
    table.add_row("not billed", _write_units(found.unbilled), "confirmed when nothing was left")
    table.add_row("came back", _write_units(found.released), "holds that nobody confirmed")
    console.print(f"Money of {found.day}, in currency units", highlight=False)
    console.print(table, highlight=False)
    for one in found.differences:
        console.print(
            f"{one.kind} {one.id}: charged {_write_units(one.charged)}, says {_write_units(one.reported)}, "
            f"{_write_units(one.reported - one.charged)} apart",
            highlight=False,
            soft_wrap=True,
        )
    console.print("The books agree." if found.is_balanced else "The books do not agree.", highlight=False)


def _write_units(micros: int) -> str:
    """Write an amount with all its places: none of them is lost."""
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    return f"{sign}{micros // MICROS_PER_UNIT:,}.{micros % MICROS_PER_UNIT:06}"
