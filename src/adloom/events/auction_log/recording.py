"""Publishes recorded auctions: into the side stream, or, if that is impossible, only what was served into the log."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from adloom.events.auction_log.side_stream import unpack_entry
from adloom.events.log.append import EventAppender, EventLog, EventSpool
from adloom.events.log.event import Served, decode_event

PENDING_MAX: Final = 1_000  # With 256 bids each they are 15 MB.
BATCH_MAX: Final = (
    50  # The server does nothing else while it takes a batch: with 256 bids each about a millisecond.
)

EnqueueAll = Callable[[Sequence[bytes]], object]


class AuctionAppender:
    """Appends pairs of an entry and its auction, without waiting; use it as a context."""

    def __init__(self, side_stream: EventLog, enqueue_served: EnqueueAll, spool: EventSpool | None) -> None:
        self._fallback = _ServedFallback(enqueue_served, spool)
        self._appender = EventAppender(
            side_stream, self._fallback, pending_max=PENDING_MAX, batch_max=BATCH_MAX
        )

    async def __aenter__(self) -> Self:
        await self._appender.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Append what is still pending, within a bound."""
        await self._appender.__aexit__(kind, error, trace)

    @property
    def left_out(self) -> int:
        """How many auctions were not recorded, because Valkey did not take them in time."""
        return self._fallback.left_out

    def enqueue_all(self, pairs: Sequence[bytes]) -> None:
        """Append auctions; of those without room, only what was served."""
        taken = self._appender.enqueue_all(pairs)
        self._fallback.enqueue_served(pairs[taken:])


class _ServedFallback:
    """Takes the place of an appender's spool: nothing waits here, the log's own entries are published alone.

    While events wait in the process's spool, Valkey is away and need not be asked.
    """

    has_room_to_spare = True

    def __init__(self, enqueue_served: EnqueueAll, spool: EventSpool | None) -> None:
        self._enqueue_served = enqueue_served
        self._spool = spool
        self.left_out = 0

    @property
    def is_empty(self) -> bool:
        return self._spool is None or self._spool.is_empty

    async def wait_for_drain(self) -> None:
        return  # Nothing waits here.

    async def put(self, entries: Sequence[bytes]) -> None:
        self.enqueue_served(entries)

    def enqueue_served(self, pairs: Sequence[bytes]) -> None:
        self.left_out += len(pairs)
        alone = map(unpack_entry, pairs)
        # An unsold auction is of no use without its bids.
        if served := [entry for entry in alone if isinstance(decode_event(entry), Served)]:
            self._enqueue_served(served)
