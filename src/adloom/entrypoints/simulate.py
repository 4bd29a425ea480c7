"""`adloom simulate`: days of traffic in seconds on virtual time, with crashes, and a report of the laws."""

import logging
import time
from collections.abc import Sequence

import structlog
from rich.console import Console
from rich.table import Table

from adloom.simulation.faults import ORDINARY
from adloom.simulation.world import DAY_SECONDS, Outcome, Plan, simulated

VIEWS_PER_DAY = 2_000
VIOLATIONS_SHOWN_MAX = 20


def run(seed: int, days: int) -> None:
    """Simulate, print a report, and exit with an error if a law was broken."""
    console = Console()
    # The simulated house logs every fault that it gets over; here they are counted instead.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    plan = Plan(
        seed=seed,
        seconds=days * DAY_SECONDS,
        views_per_second=VIEWS_PER_DAY / DAY_SECONDS,
        faults=ORDINARY,
    )
    started_at = time.perf_counter()
    with console.status(f"Simulating {days} days with seed {seed} …"):
        outcome = simulated(plan)
    console.print(_report(outcome, days=days, seconds=time.perf_counter() - started_at))
    if outcome.violations:
        console.print(_complaint(outcome.violations))
        console.print(
            f"[red]A law was broken. The same run again: adloom simulate --seed {seed} --days {days}"
        )
        raise SystemExit(1)


def _report(outcome: Outcome, *, days: int, seconds: float) -> Table:
    table = Table(title=f"{days} days in {seconds:.1f} s, seed {outcome.seed}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    figures = {
        "page views": outcome.requests,
        "page views without an answer": outcome.unserved,
        "events sent": outcome.sent,
        "events accepted": outcome.accepted,
        "impressions counted": outcome.impressions,
        "clicks counted": outcome.clicks,
        "dead letters": outcome.buried,
    }
    for name, figure in figures.items():
        table.add_row(name, f"{figure:,}")
    table.add_section()
    for name, figure in outcome.faults.items():
        table.add_row(f"fault: {name}", f"{figure:,}")
    table.add_section()
    verdict = "[red]broken" if outcome.violations else "[green]holds"
    table.add_row("law 1: what is accepted is counted exactly once", verdict)
    table.add_row("law 6: digest of this run, the same for the same seed", outcome.digest)
    return table


def _complaint(violations: Sequence[str]) -> str:
    shown = "\n".join(violations[:VIOLATIONS_SHOWN_MAX])
    left = len(violations) - VIOLATIONS_SHOWN_MAX
    return f"{shown}\n… and {left} more" if left > 0 else shown
