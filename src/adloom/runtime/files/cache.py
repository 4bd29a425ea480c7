"""Small files in memory: a bucket is asked for them once, not for every visitor."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from adloom.runtime.files.store import FileStore, OpenFile

FILE_BYTES_MAX: Final = 512 * 1024
BYTES_MAX: Final = 64 * 2**20


class _FileInMemory:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    async def read(self, first: int, count: int) -> AsyncGenerator[bytes]:
        yield self._data[first : first + count]


class CachedFiles:
    """Another store, with its small files in memory; beyond the bound those go that were not read the longest."""

    def __init__(self, files: FileStore, *, bytes_max: int = BYTES_MAX) -> None:
        self._files = files
        self._bytes_max = bytes_max
        self._known: dict[str, bytes] = {}  # Least recently used first.
        self._size = 0

    async def write(self, key: str, data: bytes, content_type: str) -> None:
        await self._files.write(key, data, content_type)

    @contextlib.asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[OpenFile | None]:
        data = self._known.pop(key, None)
        if data is not None:
            self._known[key] = data
            yield _FileInMemory(data)
            return
        async with self._files.open(key) as file:
            if file is None or file.size > FILE_BYTES_MAX:
                yield file
                return
            data = b"".join([part async for part in file.read(0, file.size)]) if file.size else b""
        self._keep(key, data)
        yield _FileInMemory(data)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._files.delete(keys)

    def _keep(self, key: str, data: bytes) -> None:
        self._size += len(data) - len(self._known.pop(key, b""))
        self._known[key] = data
        while self._size > self._bytes_max:
            self._size -= len(self._known.pop(next(iter(self._known))))
