"""`adloom bench`, also as `python -m bench`: the cost of the hot routes, as ratios within one run; others by name."""

import contextlib
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from adloom.core.clock import SystemClock
from bench.figures import EVENT, SERVE, build_report, compute_figures, render_report
from bench.load import NO_OP, BenchPlan, BenchSubject, Sample, Target, find_wrk, take_samples
from bench.processes import LoadError, ShowStatus
from bench.product import run_product
from bench.servers import find_nginx, run_nginx

# The other benches, and their functions.
BENCHES: Final = {
    "auctions": "bench.auction.over_http:main",
    "bids": "bench.budgets.bids:main",
    "budgets": "bench.budgets.serve:main",
    "charges": "bench.budgets.charges:main",
    "contextual": "bench.contextual.serve:main",
    "crawl": "bench.crawl:main",
    "creatives": "bench.contextual.creatives:main",
    "decisions": "bench.auction.decision:main",
    "events": "bench.events:main",
    "idle-budgets": "bench.budgets.idle:main",
    "index": "bench.index_size:main",
    "market": "bench.auction.market:main",
    "pages": "bench.pages:main",
    "questions": "bench.statistics:ask_questions",
    "rollup": "bench.statistics:roll_up_a_day",
    "scoring": "bench.scoring:main",
    "sync": "bench.sync:main",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def run(  # noqa: PLR0913 - one an option
    context: typer.Context,
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 3.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each target.")] = 3,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 32,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Delivery processes.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """Measure no-op, serve, event and nginx, each as a ratio to the no-op of the same run."""
    if context.invoked_subcommand is None:
        plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=workers)
        measure_routes(plan, json_file)


def measure_routes(plan: BenchPlan, json_file: Path | None = None) -> None:
    console = Console()
    with console.status("") as status:
        samples = _take_samples(plan, status.update)
    report = build_report(plan, compute_figures(samples), now=SystemClock().now())
    console.print(render_report(report))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))


def _take_samples(plan: BenchPlan, report: ShowStatus) -> list[Sample]:
    """Measure a product of our own, and nginx if it is installed."""
    find_wrk()
    with contextlib.ExitStack() as stack:
        report("starting the product")
        product = stack.enter_context(run_product(workers=plan.workers))
        targets = [
            Target(name=NO_OP, port=product.port, path="/health/live"),
            Target(name=SERVE, port=product.port, path=product.serve_path),
            Target(name=EVENT, port=product.port, path="/banners/events/impression", body=product.impression),
        ]
        subjects = [BenchSubject(target=target, pids=product.delivery_pids) for target in targets]
        nginx = find_nginx()
        if nginx is not None:
            subjects.append(stack.enter_context(run_nginx(nginx)))
        return take_samples(subjects, plan, report)


def _find_message(errors: ExceptionGroup[LoadError]) -> str:
    first = errors.exceptions[0]
    return str(first) if isinstance(first, LoadError) else _find_message(first)


if __name__ == "__main__":
    for name, function in BENCHES.items():
        app.command(name)(resolve_name(function))
    # Task groups raise exception groups.
    try:
        app(prog_name="adloom bench")
    except* LoadError as errors:
        sys.exit(f"adloom bench: {_find_message(errors)}")
