"""Messages that wait for their actors, in order of arrival and with bounds."""

import asyncio
from collections import deque
from typing import Any, Final, NamedTuple

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
