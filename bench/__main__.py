"""`adloom bench`, also as `python -m bench`: the cost of the hot routes, as ratios within one run."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from adloom.core.clock import SystemClock
from bench.figures import compute_figures, judge_goals
from bench.load import LoadError
from bench.report import build_report, render_report
from bench.rounds import BenchPlan, measure

ROUNDS_MAX = 100
SECONDS_MAX = 600.0
CONNECTIONS_MAX = 1_000
WORKERS_MAX = 64


def run(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=SECONDS_MAX, help="Length of a round.")] = 3.0,
    rounds: Annotated[int, typer.Option(min=1, max=ROUNDS_MAX, help="Rounds of each target.")] = 3,
    connections: Annotated[int, typer.Option(min=1, max=CONNECTIONS_MAX, help="Open connections.")] = 32,
    workers: Annotated[int, typer.Option(min=1, max=WORKERS_MAX, help="Delivery processes.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """Measure no-op, serve, event and nginx, each as a ratio to the no-op of the same run."""
    console = Console()
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=workers)
    with console.status("") as status:
        try:
            samples = measure(plan, status.update)
        except LoadError as error:
            sys.exit(f"adloom bench: {error}")
    figures = compute_figures(samples)
    report = build_report(plan, figures, judge_goals(figures), now=SystemClock().now())
    console.print(render_report(report))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    app(prog_name="adloom bench")
