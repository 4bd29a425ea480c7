"""A full disk: PostgreSQL stops cleanly with the help of the reserve, and starts when there is room."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import asyncpg
import msgspec
import pytest

from adloom.app.up.disk import DiskReserve, start_with_room, watch_disk
from adloom.events.log.spool.disk import can_write_to
from adloom.runtime.embedded.binaries import find_postgres_home
from adloom.runtime.embedded.servers import describe_servers
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.installation import InstallationError, make_secrets
from adloom.runtime.ports import find_port
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from tests.support.eventually import eventually
from tests.support.product import an_open_folder

MEGABYTE = 2**20


@contextlib.contextmanager
def a_small_disk(megabytes: int) -> Generator[Path]:
    """Mount a disk in memory; only root can, and not everywhere."""
    with an_open_folder() as folder:
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(folder)],  # noqa: S607 - the system's own
            capture_output=True,
            check=False,
        )
        if mount.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {mount.stderr.decode().strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607 - likewise


def fill(folder: Path, *, leave_bytes: int) -> Path:
    """Fill a disk up to some bytes."""
    filler = folder / "filler"
    space = os.statvfs(folder)
    with filler.open("wb") as writing:
        os.posix_fallocate(writing.fileno(), 0, space.f_bavail * space.f_frsize - leave_bytes)
    return filler


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_noticed_without_any_event() -> None:
    with a_small_disk(32) as folder:
        before = can_write_to(folder)
        fill(folder, leave_bytes=MEGABYTE)
        after = can_write_to(folder)

    assert (before, after) == (True, False)


def test_a_disk_that_takes_no_writes_is_noticed(tmp_path: Path) -> None:
    assert not can_write_to(tmp_path / "gone")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_the_reserve_is_given_back_once_and_kept_again_when_there_is_room() -> None:
    with a_small_disk(64) as folder:
        reserve = DiskReserve(folder, reserve_bytes=8 * MEGABYTE, low_bytes=4 * MEGABYTE)
        reserve.keep()
        assert not reserve.check_disk()
        filler = fill(folder, leave_bytes=MEGABYTE)

        assert [reserve.check_disk(), reserve.check_disk(), reserve.is_full] == [True, False, True]
        assert reserve.free_bytes >= 8 * MEGABYTE
        filler.unlink()
        assert [reserve.check_disk(), reserve.is_full] == [False, False]
        assert (folder / "reserve").stat().st_blocks * 512 >= 8 * MEGABYTE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_start_on_a_full_disk_is_refused_with_a_sentence() -> None:
    with a_small_disk(16) as folder, pytest.raises(InstallationError, match="is full: 16 MB are free"):
        DiskReserve(folder, reserve_bytes=64 * MEGABYTE).keep()


@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_postgresql_stops_cleanly_on_a_full_disk_and_starts_when_there_is_room() -> None:
    with a_small_disk(256) as folder:
        reserve = DiskReserve(folder, reserve_bytes=48 * MEGABYTE)
        reserve.keep()
        here = Listening(port=find_port())
        servers = describe_servers({}, folder, make_secrets(), postgres=here, valkey=Listening(port=1))
        child = start_with_room(servers, reserve).postgres
        assert child is not None

        async def work(supervisor: Supervisor) -> None:
            watching = asyncio.ensure_future(watch_disk(supervisor, reserve))
            await supervisor.start([msgspec.structs.replace(child, stop_seconds_max=10.0)])
            await ask(servers.database_url, "CREATE TABLE kept AS SELECT 'a row' AS what")
            filler = fill(folder, leave_bytes=MEGABYTE)
            await eventually(lambda: state_of(folder / "postgres") == "shut down", seconds=30)
            filler.unlink()
            await eventually(lambda: state_of(folder / "postgres") == "in production", seconds=30)
            assert await ask(servers.database_url, "SELECT what FROM kept") == "a row"
            watching.cancel()

        await run_supervised(work)


def state_of(cluster: Path) -> str:
    program = find_postgres_home(reachable_by=None) / "bin" / "pg_controldata"
    said = subprocess.run([str(program), str(cluster)], capture_output=True, check=False, text=True)
    [line] = [line for line in said.stdout.splitlines() if line.startswith("Database cluster state")]
    return line.partition(":")[2].strip()


async def ask(url: str, statement: str) -> str | None:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
