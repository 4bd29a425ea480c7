"""What budget actors' surroundings need of whoever hosts them, and of each other."""

import asyncio
from typing import Protocol

import msgspec

from adloom.runtime.actors.actor import Address


class Host(Protocol):
    """Runs the entities, here or elsewhere."""

    def tell(self, address: Address, message: msgspec.Struct) -> bool:
        """Send a message that nobody waits for; tell whether there was room for it."""
        ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]":
        """Send a message, or raise UnavailableError; the future is done when what came of it is kept."""
        ...
