"""`adloom simulate`: days of traffic in seconds on virtual time, with crashes, and a report of the laws."""

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from adloom.simulation.faults import ORDINARY
from adloom.simulation.processes import CALM
from adloom.simulation.swarm import outcomes, quieted
from adloom.simulation.world import DAY_SECONDS, Outcome, Plan, simulated

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


def run(
    *,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Days to simulate.")] = 3,
    runs: Annotated[
        int,
        typer.Option(
            min=0, max=RUNS_MAX, help="Short and rough runs from this seed on instead, on all cores."
        ),
    ] = 0,
) -> None:
    """Run days of traffic in seconds, on virtual time and with crashes, and check the laws."""
    quieted()
    if runs:
        _run_many(range(seed, seed + runs))
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
    table = _report(f"{days} days in {seconds:.1f} s, seed {seed}", _figures(outcome), outcome.faults)
    verdict = "[red]broken" if outcome.violations else "[green]holds"
    table.add_row("law 1: what is accepted is counted exactly once", verdict)
    table.add_row("law 6: digest of this run, the same for the same seed", outcome.digest)
    console.print(table)
    if outcome.violations:
        console.print(_complaint(outcome.violations), markup=False)
        console.print(
            f"[red]A law was broken. The same run again: adloom simulate --seed {seed} --days {days}"
        )
        raise SystemExit(1)


def _run_many(seeds: range) -> None:
    console = Console()
    figures, faults = Counter[str](), Counter[str]()
    broken: list[Outcome] = []
    started_at = time.perf_counter()
    ended = 0
    with Progress(console=console, transient=True) as progress, contextlib.closing(outcomes(seeds)) as runs:
        for outcome in progress.track(runs, total=len(seeds), description="Simulating"):
            ended += 1
            figures.update(_figures(outcome))
            faults.update(outcome.faults)
            if outcome.violations:
                broken.append(outcome)
                console.print(f"Seed {outcome.seed} broke a law:", style="red")
                console.print(_complaint(outcome.violations), markup=False)
            if len(broken) == BROKEN_MAX:
                break
    seconds = time.perf_counter() - started_at
    table = _report(f"{ended:,} runs in {seconds:.1f} s", figures, faults)
    verdict = f"[red]broken by {len(broken):,}" if broken else "[green]holds"
    table.add_row("law 1: what is accepted is counted exactly once", verdict)
    console.print(table)
    if broken:
        console.print(
            f"[red]A law was broken. The same run again: adloom simulate --runs 1 --seed {broken[0].seed}"
        )
        raise SystemExit(1)


def _figures(outcome: Outcome) -> dict[str, int]:
    said = msgspec.structs.asdict(outcome)
    return {name: said[name] for name in FIGURES}


def _report(title: str, figures: Mapping[str, int], faults: Mapping[str, int]) -> Table:
    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, words in FIGURES.items():
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
