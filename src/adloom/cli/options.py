"""`--data-dir`, an option of most commands."""

import os
from pathlib import Path
from typing import Annotated

import typer

from adloom.runtime.installation import DataDirectory, default_data_directory

DataDir = Annotated[
    Path | None,
    typer.Option(
        # Not in square brackets, which are taken for a colour.
        help="Where everything is kept: by default /var/lib/adloom for root, else ~/.local/share/adloom.",
        show_default=False,
    ),
]


def data_directory(given: Path | None) -> DataDirectory:
    if given is None:
        return DataDirectory(default_data_directory(os.environ, is_root=os.geteuid() == 0))
    return DataDirectory(given.absolute())
