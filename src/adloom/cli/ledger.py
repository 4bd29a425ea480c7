"""The commands `adloom ledger …`, about the event log."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from adloom.cli import options
from adloom.cli.options import DataDir, resolve_data_directory, resolve_database_url, resolve_redis_url

if TYPE_CHECKING:
    from rich.console import Console

PIPE_COLUMNS = 200

app = typer.Typer(name="ledger", help="Look after the ledger.", **options.GROUP)

dead = typer.Typer(name="dead", help="Entries that a projection gave up.", **options.GROUP)
app.add_typer(dead)

LetterId = Annotated[str, typer.Argument(metavar="ID", help="As `adloom ledger dead list` shows it.")]


@app.command()
def status(*, data_dir: DataDir = None) -> None:
    """Show how much the ledger holds, and for each projection how far it is and which worker owns it."""
    from adloom.cli.ledger_report import show_status

    asyncio.run(show_status(resolve_database_url(data_dir), resolve_redis_url(data_dir), _make_console()))


@dead.command("list")
def list_dead(*, data_dir: DataDir = None) -> None:
    """List the dead letters, oldest first."""
    from adloom.cli import ledger_report

    asyncio.run(ledger_report.list_dead(resolve_redis_url(data_dir), _make_console()))


@dead.command("show")
def show_dead(letter_id: LetterId, *, data_dir: DataDir = None) -> None:
    """Show one: why it was given up, and the event if it can be read."""
    from adloom.cli import ledger_report

    asyncio.run(ledger_report.show_dead(resolve_redis_url(data_dir), letter_id, _make_console()))


@dead.command("retry")
def retry_dead(
    letter_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="As `adloom ledger dead list` shows it.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that there are.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Append them to the ledger again; an event that was counted meanwhile is not counted twice."""
    from adloom.cli import ledger_report

    if (letter_id is None) != every:
        raise typer.BadParameter("Name one, or say --all.", param_hint="ID")
    letter_ids = None if letter_id is None else [letter_id]
    asyncio.run(ledger_report.retry_dead(resolve_redis_url(data_dir), letter_ids, _make_console()))


@dead.command("forget")
def forget_dead(letter_id: LetterId, *, data_dir: DataDir = None) -> None:
    """Drop one for good."""
    from adloom.cli import ledger_report

    asyncio.run(ledger_report.forget_dead(resolve_redis_url(data_dir), letter_id, _make_console()))


@app.command()
def spool(*, data_dir: DataDir = None) -> None:
    """List what waits on this machine's disk for the ledger: ADLOOM_SPOOL_DIR's, or an installation's."""
    from adloom.events.log.spool.drain import locate_spool
    from adloom.events.log.spool.inspect import describe_spool

    for line in describe_spool(locate_spool(os.environ, resolve_data_directory(data_dir))):
        typer.echo(line)


@app.command()
def replay(
    *,
    projection: Annotated[str, typer.Option(help="What to rebuild: event_tables or frequency.")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="The first entry to read again: its id, a time, a day, or `beginning`, the oldest that there is.",
        ),
    ] = "beginning",
    data_dir: DataDir = None,
) -> None:
    """Rebuild a projection from the ledger, beside the one in use, and replace that."""
    from rich.console import Console

    from adloom.cli import replay as command
    from adloom.runtime.settings import ConversionSettings, read_settings

    asyncio.run(
        command.run(
            projection,
            start,
            database_url=resolve_database_url(data_dir),
            redis_url=resolve_redis_url(data_dir),
            console=Console(soft_wrap=True),
            conversions=read_settings(ConversionSettings, os.environ, process="adloom"),
        )
    )


@app.command()
def topics(
    *,
    schema: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Print the JSON Schema of a topic instead.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """List the topics that your programs can follow."""
    from adloom.cli import ledger_report as command

    if schema is not None:
        typer.echo(command.find_schema(schema), nl=False)
        return

    async def show() -> None:
        async for line in command.report_topics(resolve_redis_url(data_dir)):
            typer.echo(line)

    asyncio.run(show())


def _make_console() -> "Console":
    from rich.console import Console

    # A pipe has no width: what is cut off there is lost.
    return Console() if sys.stdout.isatty() else Console(width=PIPE_COLUMNS)
