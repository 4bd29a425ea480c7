"""The disk as the spool sees it: files of one folder, each held by one living process at most.

Every operation may raise OSError. What one says is durable survives a loss of power; of what
has failed or was interrupted any part may be there.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

T = TypeVar("T")


class SpoolFile(Protocol):
    """A file that is ours: nobody else gets it while we live and have not let go of it."""

    @property
    def name(self) -> str:
        """Its name in the folder."""
        ...

    async def size(self) -> int:
        """Tell how long it is."""
        ...

    async def read(self, start: int, end: int) -> bytes:
        """Read from one place to another, or to its end."""
        ...

    async def write(self, start: int, data: bytes) -> None:
        """Write at a place, and return when that is durable."""
        ...

    async def truncate(self, size: int) -> None:
        """Cut it off, durably."""
        ...

    async def rename(self, name: str) -> None:
        """Give it another name, durably."""
        ...

    async def remove(self) -> None:
        """Remove it durably and let go of it; if that fails it may be tried again."""
        ...

    async def release(self) -> None:
        """Let go of it, so that others may claim it."""
        ...


class SpoolDisk(Protocol):
    """A folder of such files."""

    async def names(self) -> list[str]:
        """List what is there, in no order."""
        ...

    async def create(self, name: str, head: bytes) -> SpoolFile:
        """Make a file that begins so, durably, and hold it."""
        ...

    async def claim(self, name: str) -> SpoolFile | None:
        """Hold a file that is there; None where somebody else does, or where it is gone."""
        ...


class LocalDisk:
    """A folder of this machine; all its work is done by one thread, in turn."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")

    def close(self) -> None:
        """Let the thread end when it has done what it was asked to."""
        self._thread.shutdown(wait=False)

    async def names(self) -> list[str]:
        """List what is there."""
        return await self.done(lambda: os.listdir(self._folder))  # noqa: PTH208 - names, not paths

    async def create(self, name: str, head: bytes) -> SpoolFile:
        """Make a file and hold it."""
        return await self.done(lambda: self._created(name, head))

    async def claim(self, name: str) -> SpoolFile | None:
        """Hold a file that nobody holds."""
        return await self.done(lambda: self._claimed(name))

    async def done(self, work: Callable[[], T]) -> T:
        """Have something done by the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def path(self, name: str) -> Path:
        """Tell where a file is."""
        return self._folder / name

    def sync(self) -> None:
        """Make what happened to names durable."""
        sync_folder(self._folder)

    def _created(self, name: str, head: bytes) -> SpoolFile:
        path = self.path(name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            # Who looks for files that nobody holds may have been faster; it is an error like any other.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_all(descriptor, head, 0)
            os.fsync(descriptor)
            self.sync()
        except OSError:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return LocalFile(self, name, descriptor)

    def _claimed(self, name: str) -> SpoolFile | None:
        path = self.path(name)
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
    """A file of this machine; the kernel lets go of it when we die, however that comes."""

    def __init__(self, disk: LocalDisk, name: str, descriptor: int) -> None:
        self._disk = disk
        self._name = name
        self._descriptor = descriptor

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return self._name

    async def size(self) -> int:
        """Tell how long it is."""
        return await self._disk.done(lambda: os.fstat(self._descriptor).st_size)

    async def read(self, start: int, end: int) -> bytes:
        """Read from one place to another."""
        return await self._disk.done(lambda: _read_all(self._descriptor, start, end))

    async def write(self, start: int, data: bytes) -> None:
        """Write at a place, and return when that is durable."""

        def work() -> None:
            write_all(self._descriptor, data, start)
            os.fsync(self._descriptor)

        await self._disk.done(work)

    async def truncate(self, size: int) -> None:
        """Cut it off."""

        def work() -> None:
            os.ftruncate(self._descriptor, size)
            os.fsync(self._descriptor)

        await self._disk.done(work)

    async def rename(self, name: str) -> None:
        """Give it another name."""

        def work() -> None:
            self._disk.path(self._name).rename(self._disk.path(name))
            self._name = name
            self._disk.sync()

        await self._disk.done(work)

    async def remove(self) -> None:
        """Remove it and let go of it."""

        def work() -> None:
            self._disk.path(self._name).unlink(missing_ok=True)
            self._disk.sync()
            os.close(self._descriptor)

        await self._disk.done(work)

    async def release(self) -> None:
        """Let go of it."""
        await self._disk.done(lambda: os.close(self._descriptor))


def made_folder(folder: Path) -> None:
    """Make the folder if it is not there, and see that files can be made in it; OSError if they cannot."""
    if not folder.is_dir():
        folder.mkdir(mode=FOLDER_MODE, parents=True)
        sync_folder(folder.parent)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(0, "this user may not write there", str(folder))


def sync_folder(folder: Path) -> None:
    """Make what happened to names in a folder durable."""
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
