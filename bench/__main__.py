"""`adloom bench`, also as `python -m bench`. What the hot routes cost, as ratios in one run."""

import typer

from bench.command import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(run)
app(prog_name="adloom bench")
