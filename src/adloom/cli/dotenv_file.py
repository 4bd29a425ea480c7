"""Variables out of a `.env` file."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from adloom.core.setting import SettingsError


def with_dotenv(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    """Add what a `.env` file of ours says; the environment itself wins."""
    if not path.is_file() or path.stat().st_uid not in {0, os.geteuid()}:
        return dict(variables)
    # Loaded only where there is a file: most commands run without one.
    from dotenv import dotenv_values  # noqa: PLC0415

    found = dotenv_values(path, interpolate=False)
    return {**{name: value for name, value in found.items() if value is not None}, **variables}


def read_dotenv(arguments: list[str]) -> None:
    """Add what the file of ADLOOM_ENV_FILE says to the environment; for `up`, also the `.env` of the working directory.

    Other commands may be run in any folder, and whoever can write there must not set our variables.
    """
    if named := os.environ.get("ADLOOM_ENV_FILE"):
        if not Path(named).is_file():
            raise SettingsError(f"ADLOOM_ENV_FILE is {named!r}: there is no such file.")
        os.environ.update(with_dotenv(os.environ, Path(named)))
    elif arguments[:1] == ["up"]:
        # A working directory that this user may not look into has nothing to say to it.
        with contextlib.suppress(PermissionError):
            os.environ.update(with_dotenv(os.environ, Path(".env")))
