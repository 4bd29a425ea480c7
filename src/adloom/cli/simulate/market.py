"""What `adloom simulate market` does: reads a market, simulates it with a progress bar, prints and plots the result."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import typer
from rich.console import Console
from rich.table import Table

from adloom.app.progress import show_progress
from adloom.budgets.bids.nets import find_fleet_weights
from adloom.cli.options import resolve_database_url
from adloom.core.clock import SystemClock
from adloom.forecast.bid_strategies import describe_weights, list_strategies
from adloom.forecast.changes import apply_changes, parse_change
from adloom.forecast.file.market_file import read_market
from adloom.forecast.file.parts import MarketFileError
from adloom.forecast.live.rows import build_live_market
from adloom.forecast.live.store import read_installation
from adloom.forecast.market import NamedCampaign, SimulatedMarket, thin_out
from adloom.forecast.market_run import simulate_runs
from adloom.forecast.report import build_page
from adloom.forecast.result import DayEstimate, Estimate, MarketResult, RunPlan
from adloom.runtime.postgres import open_pool
from adloom.runtime.schema import raise_if_unusable

HEADINGS = ("impressions", "clicks", "conversions", "spend", "price")
WHOLE_FROM = 10  # Smaller numbers have a place.
NO_PRICE = "-"
POOL_SIZE_MAX = 2
WIDTH = 160  # Where there is no terminal: rows must not be folded.


def build_table(result: MarketResult) -> Table:
    """Show the changed campaigns and all others together; without a change, those that spend most."""
    table = Table(title="On an average day, with 90 % intervals", title_justify="left")
    table.add_column("campaign")
    if result.outcome.after is not None:
        table.add_column("")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    shown = result.choose_shown()
    for campaign in shown:
        _add_rows(table, campaign.name, [campaign], result)
    keys = {one.key for one in shown}
    others = [one for one in result.market.campaigns if one.key not in keys]
    if others:
        _add_rows(table, f"{len(others)} other campaigns", others, result)
    _add_rows(table, f"all {len(result.market.campaigns)} campaigns", result.market.campaigns, result)
    return table


def _add_rows(table: Table, name: str, campaigns: Sequence[NamedCampaign], result: MarketResult) -> None:
    compared = result.compare(campaigns)
    if compared.after is None or compared.difference is None:
        table.add_row(name, *_format_day(compared.before))
        return
    table.add_row(name, "before", *_format_day(compared.before))
    table.add_row("", "after", *_format_day(compared.after))
    table.add_row("", "change", *_format_day(compared.difference, is_signed=True), end_section=True)


def _format_day(day: DayEstimate, *, is_signed: bool = False) -> list[str]:
    counts = [
        format_estimate(one, places=0 if abs(one.mean) >= WHOLE_FROM else 1, is_signed=is_signed)
        for one in (day.impressions, day.clicks, day.conversions)
    ]
    price = NO_PRICE if day.price is None else format_estimate(day.price, places=3, is_signed=is_signed)
    return [*counts, format_estimate(day.spend, places=2, is_signed=is_signed), price]


def format_estimate(one: Estimate, *, places: int, is_signed: bool = False) -> str:
    """Write a mean, and the ends of its interval."""
    sign = "+" if is_signed else ""
    mean = f"{one.mean:{sign},.{places}f}"
    if one.low is None or one.high is None:
        return mean
    return f"{mean} ({one.low:{sign},.{places}f} … {one.high:{sign},.{places}f})"


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
    url = resolve_database_url(data_dir)
    return asyncio.run(_read_live(url))


async def _read_live(url: str) -> SimulatedMarket:
    with raise_if_unusable(url):
        async with open_pool(url, size_max=POOL_SIZE_MAX) as pool, pool.acquire() as connection:
            market = build_live_market(await read_installation(connection, now=SystemClock().now()))
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
    with show_progress("Simulating", plan.runs * arms * plan.hours, unit="hours") as work:
        outcome = simulate_runs(market, changed, plan, weights=weights, on_hour=work.advance)
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
        f"{outcome.requests:,} requests in {seconds:.1f} s, seed {plan.seed}, {plan.describe()}"
        f"{'' if changed is None else ', each without and with the change'}; averages of a day.",
        highlight=False,
    )
    for note in result.list_notes():
        console.print(note, highlight=False)
    if html is not None:
        html.write_text(build_page(result), encoding="utf-8")
        console.print(f"Plots: {html}", highlight=False)
