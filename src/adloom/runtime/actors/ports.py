"""What an actor host needs from outside, and what it counts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from adloom.runtime.actors.actor import Address


class StoredState(msgspec.Struct, frozen=True):
    """A state as stored; `format` is the number of its encoding."""

    version: int
    format: int
    state: bytes
    wake_at: datetime | None


class StateWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A state to store over the version it was made from; 0 is a new state."""

    address: Address
    was_version: int
    format: int
    state: bytes
    wake_at: datetime | None


class FencedOutError(Exception):
    """Another host has written one of these states since: this host does not own them any more."""


class StateRejectedError(Exception):
    """One of these states or records can never be stored; none of them was."""


class StateStore(Protocol):
    """Where states are stored; raises UnavailableError when it is away."""

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        """Load the states that exist."""
        ...

    async def timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        """Return the stored alarms: all of them, or those until a moment."""
        ...

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Store all states and records, or none.

        Raises FencedOutError or StateRejectedError when nothing was stored, UnavailableError when that is unknown.
        """
        ...


class FirstMessages(Protocol):
    """Configures an actor before its first message."""

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        """Return the messages that come before all others, or raise UnavailableError."""
        ...


class Broadcaster(Protocol):
    """Delivers what actors publish."""

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """Publish messages by topic; they may get lost."""
        ...


class ActorCounts:
    """Counters of a host since the start of the process."""

    __slots__ = ("batches", "failed", "fenced", "refused", "steps", "unpublished")

    def __init__(self) -> None:
        self.steps = 0  # Messages that were processed, alarms included.
        self.batches = 0
        self.failed = 0  # Messages whose step failed, or whose result was not stored.
        self.refused = 0  # Messages that no mailbox took.
        self.fenced = 0  # Times that another host was found to own the actors.
        self.unpublished = 0  # Messages that could not be published.
