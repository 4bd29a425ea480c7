"""What `adloom simulate market` does: reads a market, simulates it with a progress bar, prints and plots the result."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from time import monotonic

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from adloom.app.progress import SecondLines
from adloom.budgets.bids.nets import find_fleet_weights
from adloom.cli.options import database_url
from adloom.cli.simulate.table import build_table
from adloom.core.clock import SystemClock
from adloom.forecast.bid_strategies import describe_weights, list_strategies
from adloom.forecast.changes import apply_changes, parse_change
from adloom.forecast.file.market_file import read_market
from adloom.forecast.file.parts import MarketFileError
from adloom.forecast.live.rows import build_live_market
from adloom.forecast.live.store import read_installation
from adloom.forecast.market import SimulatedMarket, thin_out
from adloom.forecast.report import build_page
from adloom.forecast.result import MarketResult, RunPlan
from adloom.forecast.seeded_runs import simulate_runs
from adloom.runtime.postgres import POSTGRES_AWAY, open_pool
from adloom.runtime.schema import DatabaseError, describe_database

POOL_SIZE_MAX = 2
WIDTH = 160  # Where there is no terminal: rows must not be folded.


def load_file(path: Path | None) -> SimulatedMarket:
    if path is None:
        raise typer.BadParameter("Name a file, or give --live.", param_hint="FILE")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MarketFileError(f"{path} cannot be read: {error.strerror}.") from error
    return read_market(data, is_json=path.suffix.lower() == ".json")


def load_live(data_dir: Path | None) -> SimulatedMarket:
    """Copy the installation; it is only read."""
    url = database_url(data_dir)
    return asyncio.run(_read_live(url))


async def _read_live(url: str) -> SimulatedMarket:
    try:
        async with open_pool(url, size_max=POOL_SIZE_MAX) as pool, pool.acquire() as connection:
            market = build_live_market(await read_installation(connection, now=SystemClock().now()))
    except POSTGRES_AWAY as error:
        raise DatabaseError(f"{describe_database(url)} cannot be used: {error}.") from error
    if not market.requests_a_week:
        raise MarketFileError("There is not enough traffic yet: no full hour of the last seven days has any.")
    return market


def run(
    market: SimulatedMarket, plan: RunPlan, *, sentences: Sequence[str], share: float, html: Path | None
) -> None:
    """Simulate, print the table, and write the page."""
    changes = [parse_change(sentence, market) for sentence in sentences]
    changed = thin_out(apply_changes(market, changes), share) if changes else None
    market = thin_out(market, share)
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console = Console(soft_wrap=True, width=WIDTH)
    weights = find_fleet_weights(os.environ)
    arms = 1 if changed is None else 2
    started_at = monotonic()
    with show_progress(console, plan.runs * arms * plan.hours) as on_hour:
        outcome = simulate_runs(market, changed, plan, weights=weights, on_hour=on_hour)
    seconds = monotonic() - started_at
    result = MarketResult(
        market=market,
        changed_keys=frozenset(change.campaign_key for change in changes),
        sentences=tuple(sentences),
        plan=plan,
        outcome=outcome,
        notes=[said for said in [describe_weights(weights, list_strategies(market, changed))] if said],
    )
    console.print(build_table(result))
    console.print(
        f"{outcome.requests:,} requests in {seconds:.1f} s, seed {plan.seed}, {plan.runs} runs of {plan.days} days"
        f"{'' if changed is None else ', each without and with the change'}; averages of a day.",
        highlight=False,
    )
    for note in result.list_notes():
        console.print(note, highlight=False)
    if html is not None:
        html.write_text(build_page(result), encoding="utf-8")
        console.print(f"Plots: {html}", highlight=False)


@contextlib.contextmanager
def show_progress(console: Console, hours: int) -> Generator[Callable[[], None]]:
    """Show how much is done: a bar on a terminal, a line a second elsewhere, on the side of errors."""
    if console.is_terminal:
        columns = (TextColumn("simulated hours"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
            task = progress.add_task("", total=hours)
            yield lambda: progress.advance(task)
        return
    done, lines = 0, SecondLines()

    def on_hour() -> None:
        nonlocal done
        done += 1
        lines.say(f"{done:,} of {hours:,} hours are simulated.")

    yield on_hour
