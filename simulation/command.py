"""`adloom simulate`: days of traffic, or evenings of budgets, in seconds on virtual time, with crashes; the laws are checked."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from simulation.budgets.plans import simulated_money
from simulation.budgets.world import MoneyOutcome
from simulation.faults import ORDINARY
from simulation.processes import CALM
from simulation.swarm import each_seed, outcomes, quieted
from simulation.world import DAY_SECONDS, Outcome, Plan, simulated

VIEWS_PER_DAY = 1_000
VIOLATIONS_SHOWN_MAX = 20
DAYS_MAX = 366
RUNS_MAX = 1_000_000
BROKEN_MAX = 3  # Runs that broke a law, before the others are not worth waiting for.
FIGURES = {
    "requests": "page views",
    "unserved": "page views without an answer",
    "refused": "requests answered 503",
    "sent": "events sent",
    "accepted": "events accepted",
    "impressions": "impressions counted",
    "clicks": "clicks counted",
    "invalid": "of them not valid",
    "spooled": "writes to the spool",
    "buried": "dead letters",
    "trimmed": "entries of the ledger forgotten",
}


MONEY_FIGURES = {
    "views": "page views",
    "offers": "offers made",
    "auctions": "of them auctioned off",
    "confirmed": "offers seen or clicked",
    "charges": "charges",
    "unbilled": "seen too late to be charged",
    "changes": "changes of budgets and campaigns",
    "commits": "states kept",
}


class What(StrEnum):
    """What is simulated."""

    LEDGER = "ledger"
    BUDGETS = "budgets"


class Swarm(msgspec.Struct, frozen=True):
    """Many runs of one kind: how they are made, what is told of them, and the law that they are about."""

    outcomes: Callable[[range], Generator[Outcome | MoneyOutcome]]
    figures: Mapping[str, str]
    law: str
    command: str


def _money_outcomes(seeds: range) -> Generator[MoneyOutcome]:
    return each_seed(simulated_money, seeds)


LEDGERS = Swarm(
    outcomes, FIGURES, "law 1: what is accepted is counted exactly once", "adloom simulate --runs 1 --seed"
)
BUDGETS = Swarm(
    _money_outcomes,
    MONEY_FIGURES,
    "laws 2 and 4: no budget is overspent, what can be spent is, and who wins pays no more than it bids",
    "adloom simulate budgets --seed",
)


def run(
    what: Annotated[
        What, typer.Argument(help="The ledger with its readers, or budgets with their budget actors.")
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
    quieted()
    seeds = range(seed, seed + runs)
    if what is What.BUDGETS:
        _run_many(BUDGETS, seeds or range(seed, seed + 1))
    elif runs:
        _run_many(LEDGERS, seeds)
    else:
        _run_days(seed, days)


def _run_days(seed: int, days: int) -> None:
    console = Console()
    plan = Plan(
        seed=seed,
        seconds=days * DAY_SECONDS,
        views_per_second=VIEWS_PER_DAY / DAY_SECONDS,
        faults=ORDINARY,
        pace=CALM,
    )
    started_at = time.perf_counter()
    with console.status(f"Simulating {days} days with seed {seed} …"):
        outcome = simulated(plan)
    seconds = time.perf_counter() - started_at
    table = _report(
        f"{days} days in {seconds:.1f} s, seed {seed}", LEDGERS, _figures(outcome), outcome.faults
    )
    verdict = "[red]broken" if outcome.violations else "[green]holds"
    table.add_row(LEDGERS.law, verdict)
    table.add_row("law 6: digest of this run, the same for the same seed", outcome.digest)
    console.print(table)
    if outcome.violations:
        console.print(_complaint(outcome.violations), markup=False)
        console.print(
            f"[red]A law was broken. The same run again: adloom simulate --seed {seed} --days {days}"
        )
        raise SystemExit(1)


def _run_many(swarm: Swarm, seeds: range) -> None:
    console = Console()
    figures, faults = Counter[str](), Counter[str]()
    broken: list[Outcome | MoneyOutcome] = []
    digest = ""
    started_at = time.perf_counter()
    ended = 0
    with (
        Progress(console=console, transient=True) as progress,
        contextlib.closing(swarm.outcomes(seeds)) as runs,
    ):
        for outcome in progress.track(runs, total=len(seeds), description="Simulating"):
            ended += 1
            figures.update(_figures(outcome))
            faults.update(outcome.faults)
            digest = outcome.digest
            if outcome.violations:
                broken.append(outcome)
                console.print(f"Seed {outcome.seed} broke a law:", style="red")
                console.print(_complaint(outcome.violations), markup=False)
            if len(broken) == BROKEN_MAX:
                break
    seconds = time.perf_counter() - started_at
    table = _report(f"{ended:,} runs in {seconds:.1f} s", swarm, figures, faults)
    table.add_row(swarm.law, f"[red]broken by {len(broken):,}" if broken else "[green]holds")
    table.add_row("law 6: digest of the last run, the same for the same seed", digest)
    console.print(table)
    if broken:
        console.print(f"[red]A law was broken. The same run again: {swarm.command} {broken[0].seed}")
        raise SystemExit(1)


def _figures(outcome: Outcome | MoneyOutcome) -> dict[str, int]:
    said = msgspec.structs.asdict(outcome)
    return {name: figure for name, figure in said.items() if name in FIGURES or name in MONEY_FIGURES}


def _report(title: str, swarm: Swarm, figures: Mapping[str, int], faults: Mapping[str, int]) -> Table:
    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, words in swarm.figures.items():
        table.add_row(words, f"{figures[name]:,}")
    table.add_section()
    for name, figure in sorted(faults.items()):
        table.add_row(f"fault: {name}", f"{figure:,}")
    table.add_section()
    return table


def _complaint(violations: Sequence[str]) -> str:
    shown = "\n".join(violations[:VIOLATIONS_SHOWN_MAX])
    left = len(violations) - VIOLATIONS_SHOWN_MAX
    return f"{shown}\n… and {left} more" if left > 0 else shown
