"""`adloom bench`, also as `python -m bench`: the cost of the hot routes, as ratios within one run."""

import typer

from bench.command import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(run)
app(prog_name="adloom bench")
