"""`python -m bench.budgets`: the cost of budgets, as ratios to the same work without them."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from bench.budgets import charges, idle, serve
from bench.budgets.outcome import BudgetOutcome, ShowStatus, render_outcome
from bench.load import LoadError
from bench.rounds import BenchPlan

MANY_SLOTS = 3
EVENTS_MAX = 10_000_000
CAMPAIGNS_MAX = 1_000_000


class BudgetPart(StrEnum):
    """A part that can be measured alone."""

    SERVE = "serve"
    CHARGES = "charges"
    IDLE = "idle"


def main(  # noqa: PLR0913 - one an option
    *,
    only: Annotated[BudgetPart | None, typer.Option(help="Measure this alone.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="serve: length of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="serve: rounds of each placement.")] = 10,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="serve: open connections.")] = 32,
    workers: Annotated[int, typer.Option(min=1, max=64, help="serve: delivery processes.")] = 1,
    many: Annotated[
        int, typer.Option(min=2, max=10_000, help="serve: campaigns of the larger placement.")
    ] = 300,
    events: Annotated[
        int, typer.Option(min=1, max=EVENTS_MAX, help="charges: impressions a round.")
    ] = 100_000,
    campaigns: Annotated[int, typer.Option(min=1, max=CAMPAIGNS_MAX, help="charges: their campaigns.")] = 500,
    charge_rounds: Annotated[
        int, typer.Option(min=1, max=100, help="charges: rounds with charges and without.")
    ] = 1,
    idle_campaigns: Annotated[
        int, typer.Option(min=1, max=CAMPAIGNS_MAX, help="idle: campaigns that are leased.")
    ] = 100_000,
    idle_sessions: Annotated[int, typer.Option(min=1, max=64, help="idle: delivery processes.")] = 1,
    idle_seconds: Annotated[float, typer.Option(min=0.1, max=600, help="idle: how long.")] = 20.0,
) -> None:
    """Measure serving, charging and idle budgets, on temporary servers."""
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=workers)
    pairs = [serve.PlacementPair(campaigns=1, slots=1), serve.PlacementPair(campaigns=many, slots=MANY_SLOTS)]
    _show_all(
        {
            BudgetPart.SERVE: lambda say: serve.measure_serving(plan, pairs, say),
            BudgetPart.CHARGES: lambda say: asyncio.run(
                charges.measure_charges(events=events, campaigns=campaigns, rounds=charge_rounds, say=say)
            ),
            BudgetPart.IDLE: lambda say: asyncio.run(
                idle.measure_idle(
                    campaigns=idle_campaigns, sessions=idle_sessions, idle_seconds=idle_seconds, say=say
                )
            ),
        },
        only,
    )


def _show_all(
    parts: Mapping[BudgetPart, Callable[[ShowStatus], BudgetOutcome]], only: BudgetPart | None
) -> None:
    console = Console()
    for part, measured in parts.items():
        if only in (None, part):
            with console.status("") as status:
                # Task groups raise exception groups.
                try:
                    outcome = measured(status.update)
                except* LoadError as errors:
                    sys.exit(f"{part}: {_find_message(errors)}")
            console.print(render_outcome(outcome))


def _find_message(errors: ExceptionGroup[LoadError]) -> str:
    first = errors.exceptions[0]
    return str(first) if isinstance(first, LoadError) else _find_message(first)


if __name__ == "__main__":
    typer.run(main)
