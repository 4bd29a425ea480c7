"""A machine's disk in memory, behind the port of the spool: confirmed writes stay, interrupted ones may be torn."""

import asyncio
from collections.abc import Callable
from typing import Final

from simulation.faults import Faults, Host

WRITE_SECONDS_MEAN: Final = 0.002


class Disk:
    """A folder that outlives the processes that write into it; a file is held by one living process at most."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.files: dict[str, bytearray] = {}
        self.holders: dict[str, Host] = {}
        self.writes = 0

    def put(self, name: str, start: int, data: bytes) -> None:
        file = self.files.setdefault(name, bytearray())
        file.extend(bytes(max(0, start - len(file))))
        file[start : start + len(data)] = data
        self.writes += 1

    def tear(self, name: str, start: int, data: bytes) -> None:
        """Leave what a crash leaves of a write: its beginning, its length with a hole at the end, or nothing."""
        chance = self.faults.chance
        kept = data[: chance.randrange(len(data) + 1)]
        hole = chance.choice([0, len(data) - len(kept)])
        self.put(name, start, kept + bytes(hole))

    def on_adopted(self, name: str) -> None:
        """Do nothing when a process adopts the file of a dead one: everything confirmed is in it."""


class DiskConnection:
    """One process's view of the folder."""

    def __init__(self, disk: Disk, host: Host) -> None:
        self._disk = disk
        self._host = host

    async def list_names(self) -> list[str]:
        await self.work("list", lambda: None)
        return self._disk.faults.chance.sample(sorted(self._disk.files), len(self._disk.files))

    async def create(self, name: str, head: bytes) -> "DiskFile":
        """Make and hold a file; one that was interrupted is there, and no process holds it."""
        if name in self._disk.files:
            raise FileExistsError(name)
        await self.work(
            "create", lambda: self._disk.put(name, 0, head), lambda: self._disk.tear(name, 0, head)
        )
        self._disk.holders[name] = self._host
        return DiskFile(self, self._disk, name)

    async def claim(self, name: str) -> "DiskFile | None":
        await self.work("claim", lambda: None)
        holder = self._disk.holders.get(name)
        if name not in self._disk.files or (holder is not None and holder.is_alive):
            return None
        self._disk.on_adopted(name)
        self._disk.holders[name] = self._host
        return DiskFile(self, self._disk, name)

    async def work(
        self,
        what: str,
        finish: Callable[[], object],
        tear: Callable[[], object] | None = None,
        *,
        on_file: str | None = None,
    ) -> None:
        """Do something that takes time; if the process dies or the disk fails meanwhile, a part of it may be done.

        What a dead process had begun on a file is done before another process has the file, or never.
        """
        faults, host = self._disk.faults, self._host

        def do(work: Callable[[], object]) -> None:
            if on_file is None or self._disk.holders.get(on_file) is host:
                work()

        if not host.is_alive:
            raise OSError("This process is dead.")
        try:
            await asyncio.sleep(faults.draw_seconds(WRITE_SECONDS_MEAN))
        except asyncio.CancelledError:
            # The caller no longer waits, but the real thread would finish its work.
            if host.is_alive:
                do(finish)
            raise
        if host.is_alive and not faults.strikes(f"disk failed to {what}", faults.rates.disk_failed):
            faults.trace.note(f"disk {what}")
            do(finish)
            return
        do(faults.chance.choice([finish, tear or finish, lambda: None]))
        raise OSError(f"The disk failed to {what}.")


class DiskFile:
    """A file that one process holds."""

    def __init__(self, connection: DiskConnection, disk: Disk, name: str) -> None:
        self._connection = connection
        self._disk = disk
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def measure(self) -> int:
        await self._work("look")
        return len(self._disk.files[self._name])

    async def read(self, start: int, end: int) -> bytes:
        await self._work("read")
        return bytes(self._disk.files[self._name][start:end])

    async def write(self, start: int, data: bytes) -> None:
        await self._work(
            "write",
            lambda: self._disk.put(self._name, start, data),
            lambda: self._disk.tear(self._name, start, data),
        )

    async def truncate(self, size: int) -> None:
        def cut() -> None:
            del self._disk.files[self._name][size:]

        await self._work("truncate", cut)

    async def rename(self, name: str) -> None:
        def move() -> None:
            self._disk.files[name] = self._disk.files.pop(self._name)
            self._disk.holders[name] = self._disk.holders.pop(self._name)
            self._name = name

        await self._work("rename", move)

    async def remove(self) -> None:
        def drop() -> None:
            del self._disk.files[self._name], self._disk.holders[self._name]

        await self._work("remove", drop)

    async def release(self) -> None:
        await self._work("release", lambda: self._disk.holders.pop(self._name, None))

    async def _work(
        self,
        what: str,
        finish: Callable[[], object] = lambda: None,
        tear: Callable[[], object] | None = None,
    ) -> None:
        await self._connection.work(what, finish, tear, on_file=self._name)
