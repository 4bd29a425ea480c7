"""The spool of one process: stores events while the log is away, and drains them when it is back.

While entries of our own wait in it, new ones go behind them: their order is kept, and no request waits for a log that
is known to be away. What dead processes left is drained beside.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource, SystemIds
from adloom.events.log.append import APPEND_SECONDS_MAX, BATCH_MAX, EventLog
from adloom.events.log.spool.backlog import BYTES_MAX, SEGMENT_BYTES_MAX, Backlog
from adloom.events.log.spool.disk import LocalDisk, SpoolDisk, can_write_to, make_folder
from adloom.events.log.spool.format import escape_owner
from adloom.runtime.installation import DataDirectory
from adloom.runtime.loops import pause
from adloom.runtime.settings import DeliverySettings, SettingsError

PROBE_SECONDS_MIN: Final = 0.05
PROBE_SECONDS_MAX: Final = 1.0
PROBE_COUNT: Final = 1  # A slow log may still accept a batch after our time-out: probe with one entry.
GROWTH: Final = 8
# When so few bytes are left, new events wait: else a steady stream of them would never find the spool empty.
HANDOVER_BYTES: Final = 64 * 2**10
WAIT_SECONDS_MAX: Final = 0.5  # How long new events wait for what is being drained.
DRAINED_PER_SPOOLED: Final = 2  # Otherwise a steady overload would keep the spool from ever draining.
UNABLE_SECONDS: Final = 5.0
TAKEN_SECONDS_MAX: Final = 2 * APPEND_SECONDS_MAX  # The greatest age of an event that is put into the spool.
UNAWAITED_SHARE: Final = 0.5  # Of the bytes, that events may take which no request waits for.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class SpoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a spool."""

    bytes_max: int = BYTES_MAX
    segment_bytes_max: int = SEGMENT_BYTES_MAX
    batch_max: int = BATCH_MAX
    append_seconds_max: float = APPEND_SECONDS_MAX
    poll_seconds: float = 30.0  # Between polls for what dead processes left.


DEFAULT_LIMITS: Final = SpoolLimits()


class DiskSpool:
    """Use it as a context, around the appender's; it owns one task."""

    def __init__(  # noqa: PLR0913 - what spools differ in
        self,
        disk: SpoolDisk,
        event_log: EventLog,
        *,
        process: str,
        ids: IdSource,
        limits: SpoolLimits = DEFAULT_LIMITS,
        can_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.can_write = can_write
        self._backlog = Backlog(
            disk,
            owner=escape_owner(process),
            life=ids.make(),
            bytes_max=limits.bytes_max,
            segment_bytes_max=limits.segment_bytes_max,
        )
        self._event_log = event_log
        self._limits = limits
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._owed = 0  # Events to drain before new ones are taken.
        self._count_max = PROBE_COUNT
        self._unable_until = 0.0
        self._waits_since = 0.0  # Where something waits: the first of it came then, or later.
        self._task: asyncio.Task[None] | None = None
        # Plain counters, read by the metrics.
        self.spooled = 0
        self.drained = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        try:
            await self._backlog.adopt(is_all=False)
        except OSError as error:
            log.warning("spool_not_read", error=repr(error))
        self._task = asyncio.get_running_loop().create_task(self._run(), name="spool")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the files: the next start, or another process, drains what is in them."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if self.waiting_bytes:
            log.warning("spool_left", bytes=self.waiting_bytes)
        await self._backlog.release()

    @property
    def is_empty(self) -> bool:
        return not self._backlog.own_bytes

    @property
    def is_idle(self) -> bool:
        """Whether it is empty and not just being drained."""
        return not self._lock.locked() and self.is_empty

    @property
    def is_able(self) -> bool:
        """Whether it would take events, as far as is known without trying."""
        return self._backlog.has_room() and asyncio.get_running_loop().time() >= self._unable_until

    @property
    def has_room_to_spare(self) -> bool:
        return self._backlog.has_room(share=UNAWAITED_SHARE)

    @property
    def waiting_bytes(self) -> int:
        return self._backlog.waiting_bytes

    def find_logged_until(self, second: float) -> int:
        """Return until when all that was taken is in the log, given what time it is; 0 if a dead process took some."""
        if not self._backlog.waiting_bytes:
            return int(second)
        waits = asyncio.get_running_loop().time() - self._waits_since
        return 0 if self._backlog.adopted_bytes else int(second - waits)

    @property
    def damaged(self) -> int:
        return self._backlog.damaged

    async def wait_for_drain(self) -> None:
        """Wait a moment while it is being drained: to be behind it, or to find it empty."""
        if self.is_idle:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while self._is_warm and not self.is_empty and self._owed > 0:
                    self._progress.clear()
                    await self._progress.wait()
                async with self._lock:
                    pass
        except TimeoutError:
            return

    async def put(self, entries: Sequence[bytes]) -> None:
        was_empty = self.is_empty
        if was_empty:
            self._cool_down()  # The log has just failed.
            self._waits_since = asyncio.get_running_loop().time() - TAKEN_SECONDS_MAX
        async with self._lock:
            try:
                await self._backlog.put(entries)
            except UnavailableError:
                self.refused += len(entries)
                self._unable_until = asyncio.get_running_loop().time() + UNABLE_SECONDS
                raise
        self._unable_until = 0.0
        self._owed += DRAINED_PER_SPOOLED * len(entries) if self._is_warm else 0
        self.spooled += len(entries)
        self._wake.set()
        if was_empty:
            log.warning("spool_begun")

    async def _run(self) -> None:
        time = asyncio.get_running_loop().time
        poll_at = time() + self._limits.poll_seconds
        probe_seconds = PROBE_SECONDS_MIN
        while True:
            try:
                if time() >= poll_at:
                    poll_at = time() + self._limits.poll_seconds
                    await self._adopt_left()
                self._wake.clear()
                has_more = await self._drain_some()
            except (UnavailableError, OSError) as error:  # A time-out is an OSError, too.
                log.debug("spool_waits", error=repr(error))
                self._cool_down()
                await asyncio.sleep(probe_seconds)
                probe_seconds = min(2 * probe_seconds, PROBE_SECONDS_MAX)
            except Exception:  # the task's outermost loop: spooled events must be drained
                log.exception("spool_failed")
                await asyncio.sleep(PROBE_SECONDS_MAX)
            else:
                probe_seconds = PROBE_SECONDS_MIN
                if not has_more:
                    await pause(max(0.0, poll_at - time()), self._wake)

    async def _adopt_left(self) -> None:
        """Adopt what dead processes left, unless we have not even drained our own: another process may."""
        try:
            await self._backlog.tidy()
            await self._backlog.adopt(is_all=not self._backlog.waiting_bytes)
        except OSError as error:
            log.warning("spool_not_read", error=repr(error))

    async def _drain_some(self) -> bool:
        if not (self._is_warm and 0 < self._backlog.own_bytes <= HANDOVER_BYTES):
            return await self._drain_batch()
        async with self._lock, asyncio.timeout(WAIT_SECONDS_MAX):
            while not self.is_empty and await self._drain_batch():
                pass
        return True

    async def _drain_batch(self) -> bool:
        batch = await self._backlog.read_batch(self._count_max)
        if batch is None:
            return False
        entries = batch.found.entries
        if entries:
            async with asyncio.timeout(self._limits.append_seconds_max):
                await self._event_log.append(entries)
            self._count_max = min(GROWTH * self._count_max, self._limits.batch_max)
        was_empty = self.is_empty
        self._backlog.advance(batch)
        self.drained += len(entries)
        self._owed = max(0, self._owed - len(entries))
        self._progress.set()
        if self.is_empty and not was_empty:
            log.warning("spool_drained", spooled=self.spooled, drained=self.drained)
        return True

    @property
    def _is_warm(self) -> bool:
        """Whether the log took what it was last given."""
        return self._count_max > PROBE_COUNT

    def _cool_down(self) -> None:
        self._count_max = PROBE_COUNT
        self._owed = 0
        self._progress.set()


FOLDER_NAME = "spool"


def locate_spool(variables: Mapping[str, str], directory: DataDirectory) -> Path:
    return Path(variables.get("ADLOOM_SPOOL_DIR") or directory.path / FOLDER_NAME).absolute()


def make_spool_folder(settings: DeliverySettings) -> None:
    """Make the folder of the spool; SettingsError where that cannot be."""
    if not settings.spool_bytes_max:
        return
    folder = settings.spool_directory
    try:
        make_folder(folder)
    except OSError as error:
        raise SettingsError(
            f"ADLOOM_SPOOL_DIR is '{folder}': expected a directory that this user can make and write "
            f"({error.strerror}). ADLOOM_SPOOL_BYTES_MAX=0 does without."
        ) from error


@asynccontextmanager
async def open_spool(settings: DeliverySettings, event_log: EventLog) -> AsyncGenerator[DiskSpool | None]:
    if not settings.spool_bytes_max:
        yield None
        return
    make_spool_folder(settings)
    disk = LocalDisk(settings.spool_directory)
    limits = SpoolLimits(bytes_max=settings.spool_bytes_max)
    try:
        async with DiskSpool(
            disk,
            event_log,
            process=settings.telemetry.process,
            ids=SystemIds(),
            limits=limits,
            can_write=lambda: can_write_to(settings.spool_directory),
        ) as spool:
            yield spool
    finally:
        disk.close()
