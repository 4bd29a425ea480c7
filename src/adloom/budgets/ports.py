"""What inboxes, followers and projections need of the actor host."""

import asyncio
from typing import Protocol

import msgspec

from adloom.runtime.actors.actor import Address


class Host(Protocol):
    """Runs the actors, here or in another process."""

    def tell(self, address: Address, message: msgspec.Struct) -> bool:
        """Send without waiting for an effect; False if the mailbox is full."""
        ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]":
        """Send, or raise UnavailableError; the future is done once the effects are persisted."""
        ...
