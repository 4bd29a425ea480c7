"""Keeps room on the disk: stops PostgreSQL while it still can, and starts the servers when there is room again.

On a disk without a byte left PostgreSQL crashes, and cannot recover before there is room. So it is stopped while there
still is some, and a file that is removed then, the reserve, is what its last checkpoint needs.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
import structlog
from msgspec.structs import replace

from adloom.core.setting import Variable, parse_within
from adloom.runtime.embedded.servers import Servers
from adloom.runtime.installation import InstallationError
from adloom.runtime.loops import sleep_until_next
from adloom.runtime.settings import read_settings
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.runtime.supervisor.watch import POLL_AFTER_SECONDS
from adloom.runtime.telemetry.metrics import Metrics

FILE_NAME: Final = "reserve"
# Two segments of PostgreSQL's log.
LOW_BYTES: Final = 32 * 2**20
POLL_SECONDS: Final = 1.0
MEGABYTE: Final = 10**6
POSTGRES: Final = "postgres"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ReserveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept on the disk for a clean stop of PostgreSQL, in megabytes; 0 is nothing."""

    megabytes: Annotated[int, Variable("ADLOOM_DISK_RESERVE_MB", parse_within(0, 100_000))] = 64


class DiskReserve:
    """Room that is kept on the disk of a folder; with no bytes nothing is kept, and nothing looked at."""

    def __init__(self, folder: Path, *, reserve_bytes: int, low_bytes: int = LOW_BYTES) -> None:
        self._folder = folder
        self._file = folder / FILE_NAME
        self._reserve_bytes = reserve_bytes
        self._low_bytes = low_bytes
        self._is_full = False

    @property
    def is_full(self) -> bool:
        return self._is_full

    @property
    def free_bytes(self) -> int:
        """The free bytes, the reserve not counted."""
        return shutil.disk_usage(self._folder).free

    def keep(self) -> None:
        """Make the reserve, or raise InstallationError where there is no room for it."""
        if not self._reserve_bytes:
            return
        try:
            if self.free_bytes + self._count_kept_bytes() < self._reserve_bytes + self._low_bytes:
                raise InstallationError(self._describe())
            self._allocate()
        except OSError as error:
            raise InstallationError(self._describe()) from error

    def check_disk(self) -> bool:
        """Look at the disk; return whether it has just become full, and give the reserve back then."""
        if not self._reserve_bytes:
            return False
        was_full = self._is_full
        if not was_full and self.free_bytes < self._low_bytes:
            self._is_full = True
            self._file.unlink(missing_ok=True)
            log.error("disk_full", folder=str(self._folder), free_bytes=self.free_bytes)
        elif was_full and self.free_bytes >= self._reserve_bytes + 2 * self._low_bytes:
            # A little more than is kept, so that it does not begin again with the next byte.
            self._allocate()
            self._is_full = False
            log.warning("disk_has_room", folder=str(self._folder), free_bytes=self.free_bytes)
        return self._is_full and not was_full

    async def wait_for_room(self) -> None:
        """Wait while the disk is full."""
        while self._is_full:  # noqa: ASYNC110 - another program makes room
            await asyncio.sleep(POLL_SECONDS)

    def _count_kept_bytes(self) -> int:
        return self._file.stat().st_size if self._file.exists() else 0

    def _allocate(self) -> None:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._reserve_bytes)
            os.ftruncate(descriptor, self._reserve_bytes)  # An earlier one may have been larger.
        finally:
            os.close(descriptor)

    def _describe(self) -> str:
        needed = (self._reserve_bytes + self._low_bytes) // 10**6
        return (
            f"The disk of {self._folder} is full: {self.free_bytes // 10**6} MB are free, and {needed} MB are needed."
            " Make room, or choose another --data-dir."
        )


def make_reserve(variables: Mapping[str, str], folder: Path, servers: Servers) -> DiskReserve:
    """Make the reserve of an installation; one without a PostgreSQL of its own needs none."""
    settings = read_settings(ReserveSettings, variables, process="up")
    return DiskReserve(folder, reserve_bytes=settings.megabytes * MEGABYTE if servers.postgres else 0)


def start_with_room(servers: Servers, reserve: DiskReserve) -> Servers:
    """Let embedded servers start only while the disk is not full."""

    def wait_first(child: ChildSpec | None) -> ChildSpec | None:
        if child is None:
            return None
        prepare = child.prepare

        async def prepare_with_room() -> None:
            await reserve.wait_for_room()
            await prepare()

        return replace(child, prepare=prepare_with_room)

    return replace(
        servers,
        postgres=wait_first(servers.postgres),
        valkey=wait_first(servers.valkey),
        nats=wait_first(servers.nats),
    )


async def watch_disk(supervisor: Supervisor, reserve: DiskReserve) -> None:
    """Look at the disk every second."""
    while True:
        await sleep_until_next(POLL_SECONDS, after=POLL_AFTER_SECONDS)  # With those at the children.
        if reserve.check_disk():
            supervisor.ask_to_stop(POSTGRES)


def register_disk(metrics: Metrics, reserve: DiskReserve) -> None:
    metrics.add_gauge(
        "adloom_disk_free_bytes",
        "Free bytes of the data directory's disk, without the reserve.",
        lambda: reserve.free_bytes,
    )
