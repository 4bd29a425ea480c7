"""An entity in memory."""

import asyncio
from datetime import datetime
from typing import Any

from adloom.runtime.actors.effects import Address
from adloom.runtime.actors.kind import AnyKind
from adloom.runtime.actors.ports import StateWrite, StoredState


class ActiveActor:
    """An entity's state as it is now, what of it is kept, and who waits for the rest to be."""

    __slots__ = (
        "_kept_state",
        "address",
        "kept_wake_at",
        "kind",
        "state",
        "touched_at",
        "version",
        "waiting",
        "wake_at",
    )

    def __init__(self, address: Address, kind: AnyKind, stored: StoredState | None, *, now: datetime) -> None:
        self.address = address
        self.kind = kind
        # Any, because each kind has its own.
        self.state: Any
        if stored is None:
            self.state, self.version, self.wake_at = kind.new(address.key, now), 0, None
        else:
            self.state = kind.decode(stored.state, format_number=stored.format)
            self.version, self.wake_at = stored.version, stored.wake_at
        self._kept_state, self.kept_wake_at = self.state, self.wake_at
        self.touched_at = now
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def is_state_durable(self) -> bool:
        """Whether the state is durable as it is."""
        return self.state is self._kept_state

    @property
    def is_durable(self) -> bool:
        """Whether all there is of it is durable, so that it may leave."""
        return self.is_state_durable and self.wake_at == self.kept_wake_at

    def build_write(self) -> StateWrite:
        """Tell what is to be kept of it."""
        return StateWrite(
            address=self.address,
            was_version=self.version,
            format=self.kind.format,
            state=self.kind.encode(self.state),
            wake_at=self.wake_at,
        )

    def mark_durable(self) -> list[asyncio.Future[None]]:
        """Note that it is kept, and tell who has waited for that."""
        self.version += 1
        self._kept_state, self.kept_wake_at = self.state, self.wake_at
        waited, self.waiting = self.waiting, []
        return waited
