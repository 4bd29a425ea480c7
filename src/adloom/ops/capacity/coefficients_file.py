"""Where coefficients are: in this machine's own file if they were measured here, else in the package."""

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from adloom.core.errors import CommandError
from adloom.ops.capacity.demand import Coefficients

FILE_NAME: Final = "capacity.json"


class CoefficientsFileError(CommandError):
    """A file that is not there, or has no coefficients."""


def find_own_file(variables: Mapping[str, str]) -> Path:
    """Return where `adloom bench capacity` keeps what it measured on this machine."""
    state = variables.get("XDG_STATE_HOME") or str(Path(variables.get("HOME") or "~", ".local", "state"))
    return Path(state, "adloom", FILE_NAME).expanduser()


def read_coefficients(file: Path | None) -> Coefficients:
    """Read a file; without one, this machine's own if it was measured, else those of the package."""
    own = find_own_file(os.environ)
    chosen = file or (own if own.is_file() else None)
    if chosen is None:
        return _decode(resources.files("adloom.ops.capacity").joinpath("data", FILE_NAME).read_bytes())
    try:
        return _decode(chosen.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise CoefficientsFileError(
            f"{chosen} has no coefficients ({error}); `adloom bench capacity --json {chosen}` writes them."
        ) from error


def _decode(text: bytes) -> Coefficients:
    return msgspec.json.decode(text, type=Coefficients)
