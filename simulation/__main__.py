"""`adloom simulate`, also as `python -m simulation`. Days of traffic in seconds, on virtual time."""

import typer

from simulation.command import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(run)
app(prog_name="adloom simulate")
