"""A projection's store in memory, behind the same port as the real ones."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, AuctionEntry, Conversion, Event, Served, Unsold, encode_event
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, PoisonEntryError
from adloom.events.projections.projection import Projection


class FakeStore:
    """Keeps what was applied, and fails as the test asks."""

    def __init__(self) -> None:
        self.at = BEGINNING
        self.applied: list[DecodedEntry] = []
        self.batches: list[int] = []
        self.refuses: set[str] = set()
        self.stumbles_over: set[str] = set()
        self.is_away = False
        self.is_broken = False

    @property
    def names(self) -> list[str]:
        return [name_of(record) for record in self.applied]

    async def read_cursor(self) -> str:
        if self.is_away:
            raise UnavailableError("The store is away.")
        return self.at

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        if self.is_away:
            raise UnavailableError("The store is away.")
        if self.at != after:
            raise CursorMovedError
        if self.is_broken:
            raise RuntimeError("The store is broken.")
        names = {name_of(record) for record in records}
        if names & self.refuses:
            raise PoisonEntryError("The store refuses this.")
        if names & self.stumbles_over:
            raise RuntimeError("The store did not expect this.")
        self.applied += records
        self.at = cursor
        self.batches.append(len(records))
        return BatchResult(counted=len(records))


def name_of(record: DecodedEntry) -> str:
    happening = record.event
    if isinstance(happening, AuctionEntry):
        return str(happening.auction_id)
    if isinstance(happening, Unsold):
        return "unsold"
    if isinstance(happening, Served | Conversion):
        return str(happening.request_id)
    return happening.correlation_id


def as_entries(*events: Event | Served | bytes) -> list[bytes]:
    return [event if isinstance(event, bytes) else encode_event(event) for event in events]


async def run_until(
    is_done: Callable[[], Awaitable[bool]] | Callable[[], bool], *projections: Projection, seconds: float = 60
) -> None:
    """Run projections until something is true, and stop them as a worker does."""
    stop = asyncio.Event()
    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        for projection in projections:
            group.create_task(projection.run(stop))
        while not (answer if isinstance(answer := is_done(), bool) else await answer):  # noqa: ASYNC110 - it may happen in a server
            await asyncio.sleep(0.005)
        stop.set()
