"""Variables out of a `.env` file."""

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path

from adloom.core.setting import SettingsError


def with_dotenv(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    """Add what a `.env` file of ours says; the environment itself wins."""
    if not path.is_file() or not _is_ours(path):
        return dict(variables)
    # Loaded only where there is a file: most commands run without one.
    from dotenv.parser import parse_stream  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is no text in UTF-8.") from error
    found: dict[str, str] = {}
    for line in parse_stream(io.StringIO(text)):
        if line.error:  # It may have a password in it.
            raise SettingsError(f"{path}, line {line.original.line}: expected NAME=value.")
        if line.key is not None and line.value is not None:
            found[line.key] = line.value
    return {**found, **variables}


def _is_ours(path: Path) -> bool:
    return path.stat().st_uid in {0, os.geteuid()}


def read_dotenv(arguments: list[str]) -> None:
    """Add what the file of ADLOOM_ENV_FILE says to the environment; for `up`, also the `.env` of the working directory.

    Other commands may be run in any folder, and whoever can write there must not set our variables.
    """
    if named := os.environ.get("ADLOOM_ENV_FILE"):
        if not Path(named).is_file():
            raise SettingsError(f"ADLOOM_ENV_FILE is {named!r}: there is no such file.")
        if not _is_ours(Path(named)):
            raise SettingsError(f"ADLOOM_ENV_FILE is {named!r}: it belongs neither to this user nor to root.")
        os.environ.update(with_dotenv(os.environ, Path(named)))
    elif arguments[:1] == ["up"]:
        # A working directory that this user may not look into has nothing to say to it.
        with contextlib.suppress(PermissionError):
            os.environ.update(with_dotenv(os.environ, Path(".env")))
