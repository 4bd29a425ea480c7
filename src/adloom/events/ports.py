"""What a projection stands between: its place in the ledger's consumer group, and its store."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from adloom.events.log.entry import LogEntry
from adloom.events.log.event import LogEvent


class DecodedEntry(NamedTuple):
    """One entry of the ledger, read."""

    entry_id: str
    event: LogEvent


class BatchResult(msgspec.Struct, frozen=True):
    """What became of the events of a batch."""

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
    """Somebody else has moved the cursor: a worker that was thought dead, or a second one."""


class PoisonEntryError(Exception):
    """The store will never take one of these events, however often it is asked."""


class LogConsumer(Protocol):
    """One worker's place in the group of one projection; each raises UnavailableError when the ledger is away."""

    async def acquire(self) -> bool:
        """Take the projection's lease, or keep it; tell whether it is ours."""
        ...

    async def release(self) -> None:
        """Give the lease back, so that another need not wait for its end."""
        ...

    async def read(self, after: str, *, until: str | None, count_max: int) -> Sequence[LogEntry] | None:
        """Take the entries that follow `after`, none beyond `until`; None when the lease is another's.

        There is no gap between `after` and the first of them, whatever was taken before by whomever:
        `after` is the store's cursor, and what lies behind it is not folded.
        """
        ...

    async def wait(self, after: str, *, seconds: float) -> None:
        """Return as soon as there is an entry after `after`, or when the time is over."""
        ...

    async def count_try(self, entry_id: str) -> int:
        """Note that an entry was tried by itself and failed; tell how often by now, by whomever."""
        ...

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        """Lay an entry aside, once however often it is asked; `again` is what to append for another try."""
        ...


class ProjectionStore(Protocol):
    """Where the events go, with the cursor."""

    async def read_cursor(self) -> str:
        """Tell the last entry that was folded; UnavailableError when away."""
        ...

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Fold the events and move the cursor from `after` to `cursor`, both or neither.

        Raises CursorMovedError when it is not at `after`, PoisonEntryError for an event that can
        never be taken, and UnavailableError when it is not known whether the batch is in.
        """
        ...
