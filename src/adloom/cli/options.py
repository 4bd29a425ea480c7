"""`--data-dir`, an option of most commands, and the servers that it leads to."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from adloom.runtime.installation import DataDirectory, find_default_data_directory

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


class ClassifyCommandError(Exception):
    """A page that cannot be fetched or read; here, so that other errors need no HTML parser to be printed."""


class LearnCommandError(Exception):
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
