"""Where uploaded files are: whole files under keys, which never change once written."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import IO, Final, Protocol

CHUNK_BYTES: Final = 64 * 1024
# The group may read: delivery may run as another user of the same group.
FOLDER_MODE: Final = 0o750
FILE_MODE: Final = 0o640


class FilesAwayError(Exception):
    """The store does not answer, or refuses; the message says why."""


class OpenFile(Protocol):
    """A file that is being read."""

    @property
    def size(self) -> int: ...

    def read(self, first: int, count: int) -> AsyncGenerator[bytes]:
        """Yield `count` bytes from the position `first` on, in pieces."""
        ...


class FileStore(Protocol):
    """Keeps files by key: parts of letters, digits, `-`, `_` and `.`, joined by `/`."""

    async def write(self, key: str, data: bytes, content_type: str) -> None:
        """Write a file whole or not at all; writing the same again changes nothing."""
        ...

    def open(self, key: str) -> contextlib.AbstractAsyncContextManager[OpenFile | None]:
        """Open a file to read; None if it is not there."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete files; those that are not there are no error."""
        ...


class _FileOnDisk:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size

    async def read(self, first: int, count: int) -> AsyncGenerator[bytes]:
        descriptor, at, end = self._file.fileno(), first, first + count
        while at < end and (
            data := await asyncio.to_thread(os.pread, descriptor, min(CHUNK_BYTES, end - at), at)
        ):
            at += len(data)
            yield data


class FolderStore:
    """Files in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, key: str, data: bytes, content_type: str) -> None:  # noqa: ARG002 - the name says it
        try:
            await asyncio.to_thread(self._write, self._folder / key, data)
        except OSError as error:
            raise FilesAwayError(f"{self._folder} takes no files: {error.strerror}") from error

    def _write(self, path: Path, data: bytes) -> None:
        if path.is_file() and path.stat().st_size == len(data):
            return
        make_folders(path.parent, within=self._folder)
        descriptor, unfinished = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), FILE_MODE)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(path)
        except OSError:
            Path(unfinished).unlink(missing_ok=True)
            raise

    @contextlib.asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[OpenFile | None]:
        try:
            file = await asyncio.to_thread((self._folder / key).open, "rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            yield None
            return
        except OSError as error:
            raise FilesAwayError(f"{self._folder} cannot be read: {error.strerror}") from error
        with file:
            yield _FileOnDisk(file)

    async def delete(self, keys: Sequence[str]) -> None:
        try:
            await asyncio.to_thread(self._delete, keys)
        except OSError as error:
            raise FilesAwayError(f"{self._folder} cannot be cleaned: {error.strerror}") from error

    def _delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = self._folder / key
            path.unlink(missing_ok=True)
            for folder in path.relative_to(self._folder).parents:
                # Until one is in use; the last is the store's own.
                with contextlib.suppress(OSError):
                    if folder != Path():
                        (self._folder / folder).rmdir()


def set_modes(folder: Path) -> None:
    """Give all files below a folder the modes of the store, if it is there."""
    for one in (folder, *folder.rglob("*")) if folder.is_dir() else ():
        one.chmod(FOLDER_MODE if one.is_dir() else FILE_MODE)


def make_folders(folder: Path, *, within: Path) -> None:
    """Make a folder and those above it with the mode of the store, whatever the process has as a mask."""
    missing = [one for one in (folder, *folder.parents) if one.is_relative_to(within) and not one.is_dir()]
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            one.mkdir(parents=one == within)
            one.chmod(FOLDER_MODE)
