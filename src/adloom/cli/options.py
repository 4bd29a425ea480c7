"""What commands share: how their help looks, and `--data-dir` with the servers that it leads to."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import os
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from adloom.core import clock
from adloom.core.errors import CommandError
from adloom.runtime.installation import DataDirectory, find_default_data_directory

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

DESCRIPTION_MAX: Final = 1_000


class PlainGroup(TyperGroup):
    """A group of commands whose help is plain text and cuts nothing: tables cut names at 80 columns."""

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(DESCRIPTION_MAX)) for name, one in commands if one is not None]
            )


# What all groups of commands are made with.
GROUP: Final[dict[str, Any]] = {
    "cls": PlainGroup,
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
}

DataDir = Annotated[
    Path | None,
    typer.Option(
        envvar="ADLOOM_DATA_DIR",
        # Not in square brackets, which are taken for a colour.
        help="Where everything is kept: by default /var/lib/adloom for root, else ~/.local/share/adloom.",
        show_default=False,
    ),
]


class OnOff(StrEnum):
    """A switch with a value, `--guard off`."""

    ON = "on"
    OFF = "off"


class ClassifyCommandError(CommandError):
    """A page that cannot be fetched or read; here, so that other errors need no HTML parser to be printed."""


class LearnCommandError(CommandError):
    """Recorded days that cannot be read, or too few of one's own; here, so that other errors need no NumPy."""


def resolve_data_directory(given: Path | None) -> DataDirectory:
    if given is None:
        return DataDirectory(find_default_data_directory(os.environ, is_root=os.geteuid() == 0))
    return DataDirectory(given.absolute())


def resolve_database_url(data_dir: Path | None) -> str:
    """Return DATABASE_URL, or the address of an installation's own PostgreSQL."""
    from adloom.runtime.embedded.servers import find_database_url

    return find_database_url(os.environ, resolve_data_directory(data_dir))


def resolve_redis_url(data_dir: Path | None) -> str:
    from adloom.runtime.embedded.servers import find_redis_url

    return find_redis_url(os.environ, resolve_data_directory(data_dir))


def parse_day(text: str) -> date:
    try:
        return clock.parse_day(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from None
