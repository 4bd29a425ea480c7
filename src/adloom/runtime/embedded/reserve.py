"""A reserve on the disk: a file that is removed when the disk is full, so that PostgreSQL can stop cleanly.

On a disk without a byte left PostgreSQL crashes, and cannot recover before there is room. So it is stopped while there
still is some, and the reserve is what its last checkpoint needs. It starts again when somebody has made room.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

import structlog

from adloom.runtime.installation import InstallationError

FILE_NAME: Final = "reserve"
# Two segments of PostgreSQL's log.
LOW_BYTES: Final = 32 * 2**20
POLL_SECONDS: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


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
        """What is free for everybody, the reserve not counted."""
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
        while self._is_full:  # noqa: ASYNC110 - somebody else makes room
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
