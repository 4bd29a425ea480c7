"""Variables of the environment before they are settings: a `.env` file, and names that other programs use."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

# Names that other programs know by this, and what to set here instead.
NOT_READ: Final = {
    "SEQ_URL": "is not read: logs are lines of JSON on standard error, which `seqcli ingest --json` takes."
    " Take it out of the environment.",
}


def with_dotenv(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    """Add what a `.env` file of ours says; the environment itself wins."""
    if not path.is_file() or path.stat().st_uid not in {0, os.geteuid()}:
        return dict(variables)
    # Loaded only where there is a file: most commands run without one.
    from dotenv import dotenv_values  # noqa: PLC0415

    found = dotenv_values(path, interpolate=False)
    return {**{name: value for name, value in found.items() if value is not None}, **variables}


def add_redis_password(variables: Mapping[str, str]) -> dict[str, str]:
    """Put REDIS_PASSWORD into REDIS_URL if that has none."""
    password, url = variables.get("REDIS_PASSWORD"), variables.get("REDIS_URL")
    if not password or not url:
        return dict(variables)
    parts = urlsplit(url)
    if parts.password is not None:
        return dict(variables)
    user, _, place = parts.netloc.rpartition("@")
    with_password = parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}").geturl()
    return {**variables, "REDIS_URL": with_password}
