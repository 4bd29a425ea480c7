"""`adloom simulate`, also as `python -m simulation`: days of traffic, evenings of budgets, or minutes of the market, on virtual time."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from adloom.app.progress import show_progress
from simulation.base_world import Outcome
from simulation.faults import ORDINARY
from simulation.market import simulate_market
from simulation.processes import CALM
from simulation.swarm import run_budgets, run_event_log, run_seeds, silence_logs
from simulation.world import DAY_SECONDS, EventLogPlan, simulate

VIEWS_PER_DAY = 1_000
VIOLATIONS_SHOWN_MAX = 20
DAYS_MAX = 366
RUNS_MAX = 1_000_000
BROKEN_MAX = 3  # Stop after so many runs that broke a law.


class What(StrEnum):
    """What is simulated."""

    LEDGER = "ledger"
    BUDGETS = "budgets"
    CONTEXTUAL = "contextual"
    MARKET = "market"  # Has a command of its own, which needs no checkout.


class Swarm(msgspec.Struct, frozen=True):
    """Many runs of one kind: how they run, and the law that they check."""

    run: Callable[[int], Outcome]
    law: str
    command: str


EVENT_LOG = Swarm(
    run_event_log, "law 1: what is accepted is counted exactly once", "adloom simulate --runs 1 --seed"
)
BUDGETS = Swarm(
    run_budgets,
    "laws 2 and 4: no budget is overspent, what can be spent is, and a winner pays no more than it bids",
    "adloom simulate budgets --seed",
)

CONTEXTUAL = Swarm(
    simulate_market,
    "every active campaign is in every bidder of its categories within 60 s, and no other is",
    "adloom simulate contextual --seed",
)
SHORT = {What.BUDGETS: BUDGETS, What.CONTEXTUAL: CONTEXTUAL}


def run(
    what: Annotated[
        What,
        typer.Argument(
            help="The event log with its visitors, budgets with their leases, the contextual market, or what"
            " campaigns would have: `adloom simulate market --help`."
        ),
    ] = What.LEDGER,
    *,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    days: Annotated[
        int, typer.Option(min=1, max=DAYS_MAX, help="Days to simulate; an evening of budgets is always one.")
    ] = 3,
    runs: Annotated[
        int,
        typer.Option(
            min=0, max=RUNS_MAX, help="Short and rough runs from this seed on instead, on all cores."
        ),
    ] = 0,
) -> None:
    """Run days of traffic in seconds, on virtual time and with crashes, and check the laws."""
    if what is What.MARKET:
        raise typer.BadParameter("market comes before all options: adloom simulate market FILE …")
    silence_logs()
    seeds = range(seed, seed + runs)
    if what in SHORT:
        _run_many(SHORT[what], seeds or range(seed, seed + 1))
    elif runs:
        _run_many(EVENT_LOG, seeds)
    else:
        _run_days(seed, days)


class Tally:
    """Sums over the runs of a swarm; single outcomes are not kept."""

    def __init__(self) -> None:
        self.runs = 0
        self.figures = Counter[str]()
        self.faults = Counter[str]()
        self.broken: list[Outcome] = []
        self.digest = ""

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.figures.update(outcome.figures)
        self.faults.update(outcome.faults)
        self.digest = outcome.digest
        if outcome.violations:
            self.broken.append(outcome)


def _run_days(seed: int, days: int) -> None:
    plan = EventLogPlan(
        seed=seed,
        seconds=days * DAY_SECONDS,
        views_per_second=VIEWS_PER_DAY / DAY_SECONDS,
        faults=ORDINARY,
        pace=CALM,
    )
    console, tally, started_at = Console(), Tally(), time.perf_counter()
    with show_progress("Simulating", days, unit="days") as work:
        tally.add(simulate(plan, lambda seconds: work.update(seconds / DAY_SECONDS)))
    title = f"{days} day{'s' if days > 1 else ''} in {time.perf_counter() - started_at:.1f} s, seed {seed}"
    _report(console, title, EVENT_LOG, tally, again=f"adloom simulate --seed {seed} --days {days}")


def _run_many(swarm: Swarm, seeds: range) -> None:
    console, tally, started_at = Console(), Tally(), time.perf_counter()
    with (
        show_progress("Simulating", len(seeds), unit="runs") as work,
        contextlib.closing(run_seeds(swarm.run, seeds)) as runs,
    ):
        for outcome in runs:
            tally.add(outcome)
            work.advance()
            if len(tally.broken) == BROKEN_MAX:
                break
    title = f"{tally.runs:,} runs in {time.perf_counter() - started_at:.1f} s"
    seed = tally.broken[0].seed if tally.broken else seeds.start
    _report(console, title, swarm, tally, again=f"{swarm.command} {seed}")


def _report(console: Console, title: str, swarm: Swarm, tally: Tally, *, again: str) -> None:
    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for words, figure in tally.figures.items():
        table.add_row(words, f"{figure:,}")
    table.add_section()
    for name, figure in sorted(tally.faults.items()):
        table.add_row(f"fault: {name}", f"{figure:,}")
    table.add_section()
    table.add_row(swarm.law, f"[red]broken by {len(tally.broken):,}" if tally.broken else "[green]holds")
    table.add_row("law 6: digest of the last run, the same for the same seed", tally.digest)
    console.print(table)
    for outcome in tally.broken:
        console.print(f"Seed {outcome.seed} broke a law:", style="red")
        console.print(_shorten(outcome.violations), markup=False)
    if tally.broken:
        console.print(f"[red]A law was broken. The same run again: {again}")
        raise SystemExit(1)


def _shorten(violations: Sequence[str]) -> str:
    shown = "\n".join(violations[:VIOLATIONS_SHOWN_MAX])
    left = len(violations) - VIOLATIONS_SHOWN_MAX
    return f"{shown}\n… and {left} more" if left > 0 else shown


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(run)
    app(prog_name="adloom simulate")
