"""`adloom bench`, also as `python -m bench`: the cost of the hot routes, as ratios within one run; others by name."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Final

import typer

from adloom.runtime.process.tuning import use_one_thread
from bench.figures import PROGRESS
from bench.load import BenchPlan
from bench.processes import LoadError
from bench.routes.measure import measure_routes

# The other benches, and their functions.
BENCHES: Final = {
    "auctions": "bench.auction.over_http:main",
    "bids": "bench.budgets.bids:main",
    "capacity": "bench.capacity:main",
    "compare": "bench.routes.compare:main",
    "contextual": "bench.contextual.serve:main",
    "crawl": "bench.crawl:main",
    "decisions": "bench.auction.decision:main",
    "freshness": "bench.contextual.freshness:main",
    "market": "bench.auction.market:main",
    "page-auctions": "bench.contextual.auctions:main",
    "pages": "bench.pages:main",
    "scoring": "bench.scoring:main",
    "sync": "bench.sync:main",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


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
    """Measure the hot routes beside nginx, Python's floor and the last run, as ratios within one run."""
    if context.invoked_subcommand is None:
        plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=workers)
        measure_routes(plan, json_file)


def is_work(arguments: Sequence[str]) -> bool:
    """Whether a bench is going to run, rather than a text to be printed."""
    return "--help" not in arguments


def _find_message(errors: ExceptionGroup[LoadError]) -> str:
    first = errors.exceptions[0]
    return str(first) if isinstance(first, LoadError) else _find_message(first)


if __name__ == "__main__":
    use_one_thread()  # As workers; some benches load NumPy.
    for name, function in BENCHES.items():
        app.command(name)(resolve_name(function))
    # Task groups raise exception groups.
    try:
        with PROGRESS.show() if is_work(sys.argv[1:]) else nullcontext():
            app(prog_name="adloom bench")
    except* LoadError as errors:
        sys.exit(f"adloom bench: {_find_message(errors)}")
