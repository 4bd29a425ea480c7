"""A machine's disk in memory, behind the spool's port: what was confirmed stays, what was under way may be torn."""

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
        """Write at a place."""
        file = self.files.setdefault(name, bytearray())
        file.extend(bytes(max(0, start - len(file))))
        file[start : start + len(data)] = data
        self.writes += 1

    def tear(self, name: str, start: int, data: bytes) -> None:
        """Leave what a crash leaves of a write: its beginning, or its length with a hole at the end, or nothing."""
        chance = self.faults.chance
        kept = data[: chance.randrange(len(data) + 1)]
        hole = chance.choice([0, len(data) - len(kept)])
        self.put(name, start, kept + bytes(hole))

    def found(self, name: str) -> None:
        """Show a file to whoever takes it over from a dead process; everything confirmed is in it."""


class DiskConnection:
    """One process's view of the folder."""

    def __init__(self, disk: Disk, host: Host) -> None:
        self._disk = disk
        self._host = host

    async def list_names(self) -> list[str]:
        """List what is there, in no order."""
        await self.work("list", lambda: None)
        return self._disk.faults.chance.sample(sorted(self._disk.files), len(self._disk.files))

    async def create(self, name: str, head: bytes) -> "DiskFile":
        """Make a file that begins so, and hold it; one that was not finished is there, and nobody's."""
        if name in self._disk.files:
            raise FileExistsError(name)
        await self.work(
            "create", lambda: self._disk.put(name, 0, head), lambda: self._disk.tear(name, 0, head)
        )
        self._disk.holders[name] = self._host
        return DiskFile(self, self._disk, name)

    async def claim(self, name: str) -> "DiskFile | None":
        """Hold a file that is there and that no living process holds."""
        await self.work("claim", lambda: None)
        holder = self._disk.holders.get(name)
        if name not in self._disk.files or (holder is not None and holder.is_alive):
            return None
        self._disk.found(name)
        self._disk.holders[name] = self._host
        return DiskFile(self, self._disk, name)

    def holds(self, name: str) -> bool:
        """Tell whether a file is this process's."""
        return self._disk.holders.get(name) is self._host

    async def work(
        self, what: str, finish: Callable[[], None], tear: Callable[[], None] | None = None
    ) -> None:
        """Do something that takes its time; who dies or whose disk fails meanwhile may have done a part of it."""
        faults = self._disk.faults
        if not self._host.is_alive:
            raise OSError("This process is dead.")
        try:
            await asyncio.sleep(faults.seconds(WRITE_SECONDS_MEAN))
        except asyncio.CancelledError:
            # Whoever asked no longer waits, but a thread does what it was asked to.
            if self._host.is_alive:
                finish()
            raise
        is_broken = not self._host.is_alive or faults.strikes(
            f"disk failed to {what}", faults.rates.disk_failed
        )
        if not is_broken:
            faults.trace.note(f"disk {what}")
            finish()
            return
        outcome = faults.chance.choice([finish, tear or finish, lambda: None])
        outcome()
        raise OSError(f"The disk failed to {what}.")


class DiskFile:
    """A file that one process holds."""

    def __init__(self, connection: DiskConnection, disk: Disk, name: str) -> None:
        self._connection = connection
        self._disk = disk
        self._name = name

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return self._name

    async def measure(self) -> int:
        """Tell how long it is."""
        await self._work("look")
        return len(self._disk.files[self._name])

    async def read(self, start: int, end: int) -> bytes:
        """Read from one place to another, or to its end."""
        await self._work("read")
        return bytes(self._disk.files[self._name][start:end])

    async def write(self, start: int, data: bytes) -> None:
        """Write at a place, and return when that is durable."""
        await self._work(
            "write",
            lambda: self._disk.put(self._name, start, data),
            lambda: self._disk.tear(self._name, start, data),
        )

    async def truncate(self, size: int) -> None:
        """Cut it off."""

        def cut() -> None:
            del self._disk.files[self._name][size:]

        await self._work("truncate", cut)

    async def rename(self, name: str) -> None:
        """Give it another name."""

        def move() -> None:
            self._disk.files[name] = self._disk.files.pop(self._name)
            self._disk.holders[name] = self._disk.holders.pop(self._name)
            self._name = name

        await self._work("rename", move)

    async def remove(self) -> None:
        """Remove it and let go of it; if that fails it may be tried again."""

        def drop() -> None:
            del self._disk.files[self._name], self._disk.holders[self._name]

        await self._work("remove", drop)

    async def release(self) -> None:
        """Let go of it, so that others may claim it."""
        await self._work("release", lambda: self._disk.holders.pop(self._name, None))

    async def _work(
        self,
        what: str,
        finish: Callable[[], object] = lambda: None,
        tear: Callable[[], object] | None = None,
    ) -> None:
        """Work on the file while it is ours: what the dead had begun is done before anybody else has it."""

        def ours(work: Callable[[], object]) -> Callable[[], None]:
            def work_if_ours() -> None:
                if self._connection.holds(self._name):
                    work()

            return work_if_ours

        await self._connection.work(what, ours(finish), ours(tear or finish))
