"""A disk in memory that fails half-way and loses what was not synced, as real ones may.

Every operation is made of steps. A planned fault strikes at one of them: the disk is full or fails
(OSError), or the process dies there (`KilledError`), alone or with the whole machine.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from random import Random

from adloom.events.log.spool.disk import SpoolFile


class KilledError(BaseException):
    """The process is dead; none of its code may catch this."""


class Fault(Enum):
    """What goes wrong."""

    FAILS = "fails"
    KILLED = "killed"


class Content:
    """The bytes of a file: as processes see them, and as they are after a loss of power."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = b""
        self.holder: object | None = None


class DiskImage:
    """The files, which outlive processes."""

    def __init__(self, chance: Random | None = None) -> None:
        self.files: dict[str, Content] = {}
        self.durable_names: dict[str, Content] = {}
        self._chance = chance or Random(0)  # noqa: S311 - not for cryptography

    def lose_power(self) -> None:
        """Keep what was synced, and any part of the rest: torn at any byte, or as zeros."""
        names = dict(self.durable_names)
        for name in {*self.files, *self.durable_names}:
            if self.files.get(name) is not self.durable_names.get(name) and self._chance.random() < 0.5:
                names.pop(name, None)
                if name in self.files:
                    names[name] = self.files[name]
        self.files = names
        self.durable_names = dict(names)
        for content in names.values():
            content.holder = None
            content.seen = self._after_loss(content)
            content.durable = bytes(content.seen)

    def _after_loss(self, content: Content) -> bytearray:
        seen, durable = content.seen, content.durable
        if len(seen) < len(durable):  # It was being truncated.
            return bytearray(durable) if self._chance.random() < 0.5 else seen
        assert seen[: len(durable)] == durable, "only the end is ever written"
        torn = seen[: self._chance.randint(len(durable), len(seen))]
        if self._chance.random() < 0.3:
            torn += bytes(len(seen) - len(torn))
        return torn

    def let_go(self, holder: object) -> None:
        """Release everything that a dead process held."""
        for content in self.files.values():
            if content.holder is holder:
                content.holder = None


async def _at_once() -> None:
    return


class FakeDisk:
    """The disk as one process sees it."""

    def __init__(self, image: DiskImage, pause: Callable[[], Awaitable[None]] = _at_once) -> None:
        self.image = image
        self.is_dead = False
        self.pause = pause
        self._fault: Fault | None = None
        self._steps_left = 0
        self.share_written = 0.0

    def plan(self, fault: Fault, *, after_steps: int, share_written: float = 0.5) -> None:
        """Let a fault occur after this many steps."""
        self._fault, self._steps_left, self.share_written = fault, after_steps, share_written

    def plan_nothing(self) -> None:
        self._fault = None

    def strikes(self) -> Fault | None:
        """Return the planned fault if it strikes in this step."""
        if self.is_dead:
            return Fault.KILLED
        if self._fault is None:
            return None
        self._steps_left -= 1
        if self._steps_left >= 0:
            return None
        fault, self._fault = self._fault, None
        return fault

    def step(self) -> None:
        self.end_with(self.strikes())

    def end_with(self, fault: Fault | None) -> None:
        if fault is Fault.KILLED:
            self.die()
            raise KilledError
        if fault is Fault.FAILS:
            raise OSError(28, "No space left on device")

    def die(self) -> None:
        self.is_dead = True
        self.image.let_go(self)

    async def list_names(self) -> list[str]:
        await self.pause()
        self.step()
        return list(self.image.files)

    async def create(self, name: str, head: bytes) -> SpoolFile:
        await self.pause()
        self.step()
        assert name not in self.image.files
        content = Content()
        content.holder = self
        self.image.files[name] = content
        file = FakeFile(self, name, content)
        try:
            self.put(content, 0, head)
            self.step()
            content.durable = bytes(content.seen)
            self.sync_names(name)
        except OSError:
            del self.image.files[name]
            raise
        return file

    async def claim(self, name: str) -> SpoolFile | None:
        await self.pause()
        self.step()
        content = self.image.files.get(name)
        if content is None or content.holder is not None:
            return None
        content.holder = self
        return FakeFile(self, name, content)

    def put(self, content: Content, start: int, data: bytes) -> None:
        """Write data, or only a part of it."""
        fault = self.strikes()
        part = data if fault is None else data[: int(len(data) * self.share_written)]
        if start > len(content.seen):
            content.seen += bytes(start - len(content.seen))
        content.seen[start : start + len(part)] = part
        self.end_with(fault)

    def sync_names(self, *names: str) -> None:
        self.step()
        for name in names:
            if name in self.image.files:
                self.image.durable_names[name] = self.image.files[name]
            else:
                self.image.durable_names.pop(name, None)


class FakeFile:
    """A file that a process holds."""

    def __init__(self, disk: FakeDisk, name: str, content: Content) -> None:
        self._disk = disk
        self._name = name
        self._content = content

    @property
    def name(self) -> str:
        return self._name

    async def measure(self) -> int:
        await self._begun()
        return len(self._content.seen)

    async def read(self, start: int, end: int) -> bytes:
        await self._begun()
        return bytes(self._content.seen[start:end])

    async def write(self, start: int, data: bytes) -> None:
        await self._disk.pause()
        self._disk.put(self._content, start, data)
        await self._synced()

    async def truncate(self, size: int) -> None:
        await self._begun()
        del self._content.seen[size:]
        await self._synced()

    async def rename(self, name: str) -> None:
        await self._begun()
        files = self._disk.image.files
        files[name] = files.pop(self._name)
        before, self._name = self._name, name
        self._disk.sync_names(before, name)

    async def remove(self) -> None:
        await self._begun()
        self._disk.image.files.pop(self._name, None)
        self._disk.sync_names(self._name)
        self._content.holder = None

    async def release(self) -> None:
        await self._begun()
        self._content.holder = None

    async def _begun(self) -> None:
        await self._disk.pause()
        self._disk.step()
        assert self._content.holder is self._disk, "the file is ours"

    async def _synced(self) -> None:
        await self._disk.pause()
        self._disk.step()
        self._content.durable = bytes(self._content.seen)
