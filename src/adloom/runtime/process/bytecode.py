"""Keeps compiled modules for the next start where Python may not write them beside their sources.

Containers often set PYTHONDONTWRITEBYTECODE to keep their images clean. Then each start compiles all modules again, which
takes 4 of its 6 seconds of CPU. So they go into a folder of the user's.
"""

import importlib.util
import os
import stat
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

FORBIDDEN_BY: Final = "PYTHONDONTWRITEBYTECODE"
KEPT_IN: Final = "PYTHONPYCACHEPREFIX"


def keep_bytecode(source: str, variables: MutableMapping[str, str]) -> None:
    """Have this process and its children use the folder, unless there is bytecode of `source`, or another place for it."""
    if not sys.dont_write_bytecode or sys.pycache_prefix:
        return
    if Path(importlib.util.cache_from_source(source)).exists():
        return  # It was compiled when it was installed.
    if (folder := make_bytecode_folder(variables)) is not None:
        sys.pycache_prefix = variables[KEPT_IN] = str(folder)
        sys.dont_write_bytecode = False
        variables.pop(FORBIDDEN_BY, None)


def make_bytecode_folder(variables: MutableMapping[str, str]) -> Path | None:
    """Make the folder; None if it cannot be made, or if others could write code into it that we would run."""
    try:
        home = variables.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home) / "adloom" / "bytecode"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.lstat()
    except (OSError, RuntimeError):  # There may be no home.
        return None
    is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    return folder if is_ours and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None
