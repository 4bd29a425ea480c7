"""What the host and its senders need of NATS; only `connection` knows its client library."""

# pure

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol


class Received(NamedTuple):
    """A NATS message."""

    subject: str
    data: bytes
    reply: str
    headers: Mapping[str, str]


class Messaging(Protocol):
    """A connection to NATS."""

    @property
    def is_connected(self) -> bool: ...

    @property
    def payload_max(self) -> int:
        """How many bytes a message may have."""
        ...

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> bool:
        """Send without waiting; return whether it is on its way."""
        ...

    async def subscribe(self, subject: str, on_message: Callable[[Received], Awaitable[None]]) -> None:
        """Receive a subject until the connection is closed, also after a server was away."""
        ...

    async def request(self, subject: str, data: bytes) -> bytes:
        """Ask the server, or raise UnavailableError."""
        ...
