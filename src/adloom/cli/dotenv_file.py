"""Variables out of a `.env` file."""

import os
from collections.abc import Mapping
from pathlib import Path


def with_dotenv(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    """Add what a `.env` file of ours says; the environment itself wins."""
    if not path.is_file() or path.stat().st_uid not in {0, os.geteuid()}:
        return dict(variables)
    # Loaded only where there is a file: most commands run without one.
    from dotenv import dotenv_values  # noqa: PLC0415

    found = dotenv_values(path, interpolate=False)
    return {**{name: value for name, value in found.items() if value is not None}, **variables}
