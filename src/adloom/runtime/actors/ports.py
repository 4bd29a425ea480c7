"""What a host of entities needs of the world."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from adloom.runtime.actors.effects import Address


class StoredState(msgspec.Struct, frozen=True):
    """A state as it is kept; `format` is that of its encoding."""

    version: int
    format: int
    state: bytes
    wake_at: datetime | None


class StateWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A state to keep in the place of the version it was made from; 0 is none."""

    address: Address
    was_version: int
    format: int
    state: bytes
    wake_at: datetime | None


class FencedOutError(Exception):
    """Somebody else has written one of these states since: they are not ours any more."""


class StateRejectedError(Exception):
    """One of these states or records is such that it will never be kept; none of them is."""


class StateStore(Protocol):
    """Where states are kept; UnavailableError when it is away."""

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        """Read states; those that are not there are left out."""
        ...

    async def timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        """Tell who wants to be woken, and when: all of them, or until a moment."""
        ...

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Keep all states and write all records, or none of them.

        Raises FencedOutError or RefusedError when nothing was kept, UnavailableError when that is not known.
        """
        ...


class FirstMessages(Protocol):
    """Tells an entity what it has to know before its first message."""

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        """Give the messages that come before all others; UnavailableError when that is not known."""
        ...


class Broadcaster(Protocol):
    """Who listens to what entities publish."""

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """Tell whoever listens to each topic; nobody may, and it may get lost."""
        ...
