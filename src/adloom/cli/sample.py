"""`adloom sample …`: the status of the sample, and removing and loading it."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import os
from pathlib import Path

import typer

from adloom.cli.options import GROUP, DataDir, resolve_data_directory
from adloom.runtime.installation import DataDirectory

app = typer.Typer(
    name="sample",
    help="The sample that the first start loads: look at it, take it away, bring it back.",
    **GROUP,
)


@app.command()
def status(*, data_dir: DataDir = None) -> None:
    """Show whether the sample is loaded, and what it has."""
    from adloom.app import sample_data

    sample_data.print_status(_find_started(data_dir), typer.echo)


@app.command()
def remove(*, data_dir: DataDir = None) -> None:
    """Remove the sample, and nothing else; `adloom up` has to run."""
    from adloom.app import sample_data
    from adloom.app.progress import show_progress

    with show_progress("Removing the sample"):
        sample_data.remove(os.environ, _find_started(data_dir), typer.echo)


@app.command()
def load(*, data_dir: DataDir = None) -> None:
    """Load the sample, also beside your own data; `adloom up` has to run."""
    from adloom.app import sample_data
    from adloom.app.progress import show_progress

    with show_progress("Loading the sample"):
        sample_data.load(os.environ, _find_started(data_dir), typer.echo)


def _find_started(data_dir: Path | None) -> DataDirectory:
    """Refuse a directory on which nothing was ever started: its name may be mistyped."""
    directory = resolve_data_directory(data_dir)
    directory.require_installation()
    return directory
