"""The two ports of a projection: its consumer group in the event log, and its store."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

import msgspec

from adloom.events.log.event import LogEntry, LogEvent

E_co = TypeVar("E_co", bound=LogEvent, covariant=True)


class EntryOf(msgspec.Struct, Generic[E_co], frozen=True, gc=False):
    """One entry of the event log with an event of one kind, decoded."""

    entry_id: str
    event: E_co


DecodedEntry: TypeAlias = EntryOf[LogEvent]


class BatchResult(msgspec.Struct, frozen=True):
    """How many events of a batch were counted, and why others were not."""

    counted: int = 0
    repeated: int = 0  # Their correlation id was there already.
    dropped: int = 0  # Their banner or placement is gone from the catalog.

    def __add__(self, other: "BatchResult") -> "BatchResult":
        return BatchResult(
            counted=self.counted + other.counted,
            repeated=self.repeated + other.repeated,
            dropped=self.dropped + other.dropped,
        )


class CursorMovedError(Exception):
    """Another worker has moved the cursor: one that was thought dead, or a second one."""


class PoisonEntryError(Exception):
    """The store will never take one of these events, however often it is tried."""


class LogConsumer(Protocol):
    """One worker's place in the group of one projection; every call raises UnavailableError when the log is away."""

    async def acquire(self) -> bool:
        """Take the projection's lock or renew it; return whether it is ours."""
        ...

    async def release(self) -> None:
        """Give the lock back, so that another worker need not wait for its end."""

    async def read(self, after: str, *, until: str | None, count_max: int) -> Sequence[LogEntry] | None:
        """Return the entries after `after`, none beyond `until`; None when another worker has the lock.

        There is no gap between `after` and the first entry, whatever was read before: `after` is the store's
        cursor, and nothing behind it is applied.
        """
        ...

    async def wait(self, after: str, *, seconds: float) -> None:
        """Return as soon as there is an entry after `after`, or after `seconds`."""

    async def count_try(self, entry_id: str) -> int:
        """Count that an entry was tried alone and failed; return the number of tries of all workers."""
        ...

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        """Put an entry aside; repeated calls keep it once. `again` is what a retry appends."""


class ProjectionStore(Protocol):
    """Where events are applied, with the cursor."""

    async def read_cursor(self) -> str:
        """Return the last entry that was applied; UnavailableError when away."""
        ...

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Apply the events and move the cursor from `after` to `cursor`, both or neither.

        Raises CursorMovedError when it is not at `after`, PoisonEntryError for an event that can never be
        taken, and UnavailableError when it is not known whether the batch is in.
        """
        ...
