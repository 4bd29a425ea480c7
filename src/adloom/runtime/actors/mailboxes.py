"""What waits for actors: messages in order of arrival and with bounds, and alarms."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address

# Beyond these a message is refused: its sender sends it again, or not at all.
MAILBOX_MAX: Final = 1_000
MESSAGES_MAX: Final = 100_000


class MailboxFullError(UnavailableError):
    """Too many messages wait for this actor, or for all actors together."""


class Envelope(NamedTuple):
    """A message on its way; `answered` gets the reply, `durable` is done when the message's result is durable."""

    address: Address
    message: msgspec.Struct
    answered: asyncio.Future[Any] | None = None
    durable: asyncio.Future[None] | None = None
    is_alarm: bool = False
    is_kept_after: bool = False  # Persist the actor, whatever the step says.
    id: UUID | None = None  # Recorded with the state, so that the message is applied once.
    is_fresh: bool = False  # Load the actor anew first.

    def fail(self, error: Exception) -> None:
        for future in (self.answered, self.durable):
            if future is not None and not future.done():
                future.set_exception(error)


class Mailboxes:
    """One mailbox per actor; messages leave in order of arrival over all mailboxes."""

    def __init__(self, *, mailbox_max: int = MAILBOX_MAX, messages_max: int = MESSAGES_MAX) -> None:
        self._mailbox_max = mailbox_max
        self._messages_max = messages_max
        self._envelopes: deque[Envelope] = deque()
        self._counts: dict[Address, int] = {}

    def __len__(self) -> int:
        return len(self._envelopes)

    def put(self, envelope: Envelope) -> None:
        """Add a message, or raise MailboxFullError."""
        address = envelope.address
        count = self._counts.get(address, 0)
        if count >= self._mailbox_max or len(self._envelopes) >= self._messages_max:
            raise MailboxFullError(f"Too many messages wait for {address.kind} {address.key}.")
        self._counts[address] = count + 1
        self._envelopes.append(envelope)

    def take(self, count_max: int) -> list[Envelope]:
        """Remove and return the messages that have waited longest."""
        taken = [self._envelopes.popleft() for _ in range(min(len(self._envelopes), count_max))]
        counts = self._counts
        for envelope in taken:
            if (left := counts[envelope.address] - 1) > 0:
                counts[envelope.address] = left
            else:
                del counts[envelope.address]
        return taken


STALE_MIN: Final = 1_000  # Fewer stale entries are not worth a clean-up.


class Alarms:
    """At most one alarm per actor; a new one replaces the old."""

    def __init__(self) -> None:
        self._at: dict[Address, datetime] = {}
        self._heap: list[tuple[datetime, Address]] = []  # May hold stale entries; `_at` decides.

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, address: Address) -> bool:
        return address in self._at

    def set(self, address: Address, at: datetime | None) -> None:
        """Set an actor's alarm; None removes it."""
        if at is None:
            self._at.pop(address, None)
        elif self._at.get(address) != at:
            self._at[address] = at
            heapq.heappush(self._heap, (at, address))
            self._drop_stale()

    def find_next_at(self) -> datetime | None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime, *, count_max: int) -> list[Address]:
        """Remove and return the actors whose alarms are due, the earliest first."""
        taken: list[Address] = []
        while len(taken) < count_max and (at := self.find_next_at()) is not None and at <= now:
            _, address = heapq.heappop(self._heap)
            del self._at[address]
            taken.append(address)
        return taken

    def drop(self, is_dropped: Callable[[Address], bool]) -> None:
        """Remove the alarms of some actors."""
        for address in [one for one in self._at if is_dropped(one)]:
            del self._at[address]

    def clear(self) -> None:
        self._at.clear()
        self._heap.clear()

    def _drop_stale(self) -> None:
        """Bound the heap: an actor that moves its alarm with every message leaves many stale entries."""
        if len(self._heap) > 2 * len(self._at) + STALE_MIN:
            self._heap = [(at, address) for address, at in self._at.items()]
            heapq.heapify(self._heap)


class Host(Protocol):
    """Runs the actors, here or in another process."""

    def tell(self, address: Address, message: msgspec.Struct) -> bool:
        """Send without waiting for an effect; False if the mailbox is full."""
        ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]":
        """Send, or raise UnavailableError; the future is done once the effects are persisted."""
        ...

    async def wait_until_sent(self) -> None:
        """Wait until the messages sent would survive this process; UnavailableError if that takes too long."""
        ...
