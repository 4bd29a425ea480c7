"""Real PostgreSQL and Valkey from the wheels, started once a run and shared by its processes."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import msgspec

from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import free_port
from adloom.runtime.supervisor.program import Program, tethered

PASSWORD = "a-password-of-the-tests"
STOP_SECONDS_MAX = 10
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder itself gets a name of its own
MEMORY_BYTES_MIN = 2_000_000_000
# Tests do not care for what a crash of the machine would lose.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "log_min_messages": "panic",
}


class Services(msgspec.Struct, frozen=True):
    """Where the shared servers are; the database is the template that each test copies."""

    template_url: str


def memory_folder() -> str | None:
    """Give a folder in memory where there is room for a database a test; containers may have very little."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_MIN:
        return str(MEMORY)
    return None


@contextlib.contextmanager
def running_services() -> Generator[Services]:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-", dir=memory_folder()))
    folder.chmod(0o755)
    postgres = EmbeddedPostgres(folder / "postgres", port=free_port(), password=PASSWORD, options=FAST)
    asyncio.run(postgres.prepare())
    try:
        with running(postgres.program):
            asyncio.run(postgres.wait_until_ready())
            asyncio.run(migrate.upgrade(postgres.url))
            yield Services(template_url=postgres.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_valkey(*, appendfsync: str = "no") -> Generator[EmbeddedValkey]:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-"))
    valkey = EmbeddedValkey(folder, port=free_port(), password=PASSWORD, appendfsync=appendfsync)
    asyncio.run(valkey.prepare())
    try:
        with running(valkey.program):
            asyncio.run(valkey.wait_until_ready())
            yield valkey
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(program: Program) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(tethered(program), env=program.environment, cwd="/", start_new_session=True)
    try:
        yield process
    finally:
        process.send_signal(program.stop_signal)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
