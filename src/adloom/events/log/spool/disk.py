"""The disk as the spool sees it: files of one folder, each held by one living process at most.

Every operation may raise OSError. What has returned survives a loss of power; of what has failed or was interrupted
any part may be there. The ports have a second implementation in memory, for tests and the simulation.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

# Less than a file of the spool may have is no room.
ROOM_BYTES_MIN: Final = 8 * 2**20
BLOCK: Final = bytes(4096)

T = TypeVar("T")


def can_write_to(folder: Path) -> bool:
    """Whether a folder's disk has room and takes a block; found out without any event."""
    try:
        space = os.statvfs(folder)
        if space.f_bavail * space.f_frsize < ROOM_BYTES_MIN:
            return False
        _write_block(folder)
    except OSError:
        return False
    return True


def _write_block(folder: Path) -> None:
    """Write a block to a file without a name, where the system has such files."""
    if not hasattr(os, "O_TMPFILE"):
        return
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, FILE_MODE)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}:
            return
        raise
    try:
        os.write(descriptor, BLOCK)
    finally:
        os.close(descriptor)


class SpoolFile(Protocol):
    """A file that this process holds until it dies or releases it."""

    @property
    def name(self) -> str: ...

    async def measure(self) -> int: ...

    async def read(self, start: int, end: int) -> bytes: ...

    async def write(self, start: int, data: bytes) -> None: ...

    async def truncate(self, size: int) -> None: ...

    async def rename(self, name: str) -> None: ...

    async def remove(self) -> None:
        """Remove and release it; may be called again after a failure."""

    async def release(self) -> None: ...


class SpoolDisk(Protocol):
    """A folder of such files."""

    async def list_names(self) -> list[str]: ...

    async def create(self, name: str, head: bytes) -> SpoolFile:
        """Make a file that begins with these bytes, and hold it."""
        ...

    async def claim(self, name: str) -> SpoolFile | None:
        """Hold a file that is there; None where another process holds it, or where it is gone."""
        ...


class LocalDisk:
    """A folder of this machine; one thread does all its work, in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    async def list_names(self) -> list[str]:
        return await self.run(lambda: os.listdir(self._folder))  # noqa: PTH208 - names, not paths

    async def create(self, name: str, head: bytes) -> SpoolFile:
        return await self.run(lambda: self._create(name, head))

    async def claim(self, name: str) -> SpoolFile | None:
        return await self.run(lambda: self._claim(name))

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def get_path(self, name: str) -> Path:
        return self._folder / name

    def sync(self) -> None:
        sync_folder(self._folder)

    def _create(self, name: str, head: bytes) -> SpoolFile:
        path = self.get_path(name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            # A process that looks for files to adopt may have been faster; that is an error like any other.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_all(descriptor, head, 0)
            os.fsync(descriptor)
            self.sync()
        except OSError:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return LocalFile(self, name, descriptor)

    def _claim(self, name: str) -> SpoolFile | None:
        path = self.get_path(name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its holder may have removed it since we opened it.
            is_there = os.path.samestat(os.fstat(descriptor), path.stat())
        except (BlockingIOError, FileNotFoundError):
            is_there = False
        if not is_there:
            os.close(descriptor)
            return None
        return LocalFile(self, name, descriptor)


class LocalFile:
    """A file of this machine; the kernel releases it when the process dies."""

    def __init__(self, disk: LocalDisk, name: str, descriptor: int) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self.name = name

    async def measure(self) -> int:
        return await self._disk.run(lambda: os.fstat(self._descriptor).st_size)

    async def read(self, start: int, end: int) -> bytes:
        return await self._disk.run(lambda: _read_all(self._descriptor, start, end))

    async def write(self, start: int, data: bytes) -> None:
        await self._sync_after(lambda: write_all(self._descriptor, data, start))

    async def truncate(self, size: int) -> None:
        await self._sync_after(lambda: os.ftruncate(self._descriptor, size))

    async def rename(self, name: str) -> None:
        def work() -> None:
            self._disk.get_path(self.name).rename(self._disk.get_path(name))
            self.name = name
            self._disk.sync()

        await self._disk.run(work)

    async def remove(self) -> None:
        def work() -> None:
            self._disk.get_path(self.name).unlink(missing_ok=True)
            self._disk.sync()
            os.close(self._descriptor)

        await self._disk.run(work)

    async def release(self) -> None:
        await self._disk.run(lambda: os.close(self._descriptor))

    async def _sync_after(self, change: Callable[[], None]) -> None:
        def work() -> None:
            change()
            os.fsync(self._descriptor)

        await self._disk.run(work)


def make_folder(folder: Path) -> None:
    """Make the folder if it is not there, and see that files can be made in it; OSError if they cannot."""
    if not folder.is_dir():
        folder.mkdir(mode=FOLDER_MODE, parents=True)
        sync_folder(folder.parent)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(0, "this user may not write there", str(folder))


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes, start: int) -> None:
    """Write everything: the system may take a part only."""
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, start)
        view = view[count:]
        start += count


def _read_all(descriptor: int, start: int, end: int) -> bytes:
    parts: list[bytes] = []
    while start < end and (part := os.pread(descriptor, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
