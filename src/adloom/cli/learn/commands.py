"""`adloom learn fleet|dqn`: trains a bid strategy on recorded days, and reports how it did on days held out."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

from pathlib import Path
from typing import Annotated

import typer

from adloom.cli.options import GROUP, DataDir, resolve_database_url
from adloom.runtime.process.tuning import use_one_thread

app = typer.Typer(
    name="learn",
    help="Train a bid strategy on recorded days.",
    **GROUP,
)

Data = Annotated[
    Path | None, typer.Option(help="A folder with recorded market days, tables.npz.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed and data give the same weights.")]
Out = Annotated[Path, typer.Option(help="Where weights and report are written.")]


@app.command()
def fleet(  # noqa: PLR0913 - one for each option
    *,
    data: Data = None,
    from_ledger: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS", help="Refine the shipped weights on the installation's own last days, as 30d."
        ),
    ] = None,
    seed: Seed = 0,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Batches to learn from.")] = 500,
    out: Out = Path(),
    data_dir: DataDir = None,
) -> None:
    """Train the net that all campaigns share; about five minutes on one core."""
    use_one_thread()  # The products are small, and results must not depend on the machine.
    from adloom.cli.learn import recorded_days

    if from_ledger is not None:
        if data is not None:
            raise typer.BadParameter("Either --data or --from-ledger.", param_hint="--from-ledger")
        from adloom.cli.learn.own_auctions import refine_from_ledger

        refine_from_ledger(from_ledger, resolve_database_url(data_dir), seed=seed, steps=steps, out=out)
        return
    recorded_days.learn_fleet(recorded_days.read_archive(data), seed=seed, steps=steps, out=out)


@app.command()
def dqn(
    *,
    data: Data = None,
    seed: Seed = 0,
    episodes: Annotated[int, typer.Option(min=1, max=100_000, help="Batches of days to play.")] = 200,
    out: Out = Path(),
) -> None:
    """Train the agent of the seed on recorded days, inside the guard."""
    use_one_thread()  # The products are small, and results must not depend on the machine.
    from adloom.cli.learn import recorded_days

    recorded_days.learn_dqn(recorded_days.read_archive(data), seed=seed, episodes=episodes, out=out)


@app.command()
def score(
    *,
    data: Data = None,
    price: Annotated[float, typer.Option(min=0.01, max=100, help="Multiply all recorded prices.")] = 1.0,
) -> None:
    """Play the held-out days with every strategy, through the decision that real campaigns use."""
    use_one_thread()
    from adloom.cli.learn import recorded_days

    recorded_days.print_scores(recorded_days.read_archive(data), price=price)
