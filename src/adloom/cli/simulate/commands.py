"""`adloom simulate market FILE|--live`: reads a market, runs it without and with changes, prints a table."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

from pathlib import Path
from typing import Annotated

import typer

from adloom.cli.options import DataDir

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

DAYS_MAX = 366
RUNS_MAX = 100


@app.command()
def market(  # noqa: PLR0913 - one for each option
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A market as TOML or JSON.", show_default=False)
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="The installation's catalog, and its traffic of the last 7 days.")
    ] = False,
    days: Annotated[int, typer.Option(min=1, max=DAYS_MAX, help="Days to simulate.")] = 1,
    runs: Annotated[
        int, typer.Option(min=1, max=RUNS_MAX, help="How often: more runs, closer intervals.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 1,
    what_if: Annotated[
        list[str] | None,
        typer.Option(metavar="CHANGE", help="'campaign NAME: bid +20 %'; may be given several times."),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            min=0.0001, max=1, help="Simulate this share of all requests, with budgets in proportion."
        ),
    ] = 1.0,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with plots here.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Simulate a market on virtual time: real decisions, leases and budgets, simulated visitors."""
    from adloom.cli.simulate import market as command
    from adloom.forecast.result import RunPlan

    found = command.load_live(data_dir) if live else command.load_file(file)
    command.run(
        found, RunPlan(days=days, runs=runs, seed=seed), sentences=what_if or [], share=share, html=html
    )
