"""Telling of recorded auctions: beside the ledger, or, where that cannot be, to the ledger what was served and no more."""

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

TellAll = Callable[[Sequence[bytes]], object]


class AuctionAppender:
    """Appends pairs of an entry and its auction, for which nobody waits; use it as a context."""

    def __init__(self, beside: EventLog, tell_all: TellAll, spool: EventSpool | None) -> None:
        self._instead = _ServedInstead(tell_all, spool)
        self._appender = EventAppender(beside, self._instead, pending_max=PENDING_MAX, batch_max=BATCH_MAX)

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
        return self._instead.left_out

    def tell_all(self, pairs: Sequence[bytes]) -> None:
        """Append auctions; of those that there is no room for, what was served."""
        taken = self._appender.enqueue_all(pairs)
        self._instead.tell(pairs[taken:])


class _ServedInstead:
    """Stands where an appender has its spool: nothing waits here, but the ledger's own entries go on alone.

    While events wait in the process's spool, Valkey is away, and need not be asked.
    """

    has_room_to_spare = True

    def __init__(self, tell_all: TellAll, spool: EventSpool | None) -> None:
        self._tell_all = tell_all
        self._spool = spool
        self.left_out = 0

    @property
    def is_empty(self) -> bool:
        return self._spool is None or self._spool.is_empty

    async def wait_for_drain(self) -> None:
        return  # Nothing is behind anything.

    async def put(self, entries: Sequence[bytes]) -> None:
        self.tell(entries)

    def tell(self, pairs: Sequence[bytes]) -> None:
        self.left_out += len(pairs)
        alone = map(unpack_entry, pairs)
        # That nobody won is of no use without the auction.
        if served := [entry for entry in alone if isinstance(decode_event(entry), Served)]:
            self._tell_all(served)
