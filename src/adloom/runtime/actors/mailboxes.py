"""Messages that wait for their entities: in the order in which they came, and no more than there is room for."""

import asyncio
from collections import deque
from typing import Any, Final, NamedTuple

import msgspec

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.effects import Address

# Beyond these a message is refused: its sender sends it again, or not at all.
MAILBOX_MAX: Final = 1_000
MESSAGES_MAX: Final = 100_000


class MailboxFullError(UnavailableError):
    """The entity, or all of them together, have more messages waiting than they may."""


class Envelope(NamedTuple):
    """A message on its way; `answered` is given the reply, `durable` is done when what came of it is kept."""

    address: Address
    message: msgspec.Struct
    answered: asyncio.Future[Any] | None = None
    durable: asyncio.Future[None] | None = None
    is_alarm: bool = False
    is_kept_after: bool = False  # Whatever the step says.

    def fail(self, error: Exception) -> None:
        """Tell whoever waits that nothing is known to have come of it."""
        for future in (self.answered, self.durable):
            if future is not None and not future.done():
                future.set_exception(error)


class Mailboxes:
    """One mailbox an entity; they are emptied in turn of arrival."""

    def __init__(self, *, mailbox_max: int = MAILBOX_MAX, messages_max: int = MESSAGES_MAX) -> None:
        self._mailbox_max = mailbox_max
        self._messages_max = messages_max
        self._envelopes: deque[Envelope] = deque()
        self._counts: dict[Address, int] = {}

    def __len__(self) -> int:
        """Tell how many messages wait."""
        return len(self._envelopes)

    def put(self, envelope: Envelope) -> None:
        """Let a message wait, or raise MailboxFullError."""
        address = envelope.address
        count = self._counts.get(address, 0)
        if count >= self._mailbox_max or len(self._envelopes) >= self._messages_max:
            raise MailboxFullError(f"Too many messages wait for {address.kind} {address.key}.")
        self._counts[address] = count + 1
        self._envelopes.append(envelope)

    def take(self, count_max: int) -> list[Envelope]:
        """Take those that have waited longest."""
        taken = [self._envelopes.popleft() for _ in range(min(len(self._envelopes), count_max))]
        counts = self._counts
        for envelope in taken:
            if (left := counts[envelope.address] - 1) > 0:
                counts[envelope.address] = left
            else:
                del counts[envelope.address]
        return taken
