"""Server-sent events: listeners of this process, each with a bounded amount of events that wait for it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine, Generator, Hashable
from typing import Any, Final, Generic, TypeVar

import msgspec

from adloom.core.errors import RateLimitedError, UnavailableError

# When a client should reconnect after its stream has ended, in milliseconds.
BEGINNING: Final = b"retry: 1000\n\n"
# From here on nothing is left out; earlier events are unknown.
LISTENING: Final = b"event: listening\ndata: {}\n\n"
HEARTBEAT: Final = b": still here\n\n"

HEARTBEAT_SECONDS: Final = 15.0
# Hundreds of events of one thing may come in a second; only its last state matters.
PAUSE_SECONDS: Final = 0.25
# What a caller may see is found when a stream begins; this bound makes clients ask again.
LISTENING_SECONDS_MAX: Final = 900.0
WAITING_MAX: Final = 10_000
LISTENERS_MAX: Final = 200
LISTENERS_PER_CALLER_MAX: Final = 20


class ListenerBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many events may wait for a listener, how often it gets a sign of life, and how long it may listen."""

    waiting_max: int = WAITING_MAX
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    seconds_max: float = LISTENING_SECONDS_MAX


class EventListener:
    """Receives events; of those with one key only the last waits."""

    def __init__(self, *, caller: str, bounds: ListenerBounds) -> None:
        self.caller = caller
        self._bounds = bounds
        self._waiting: dict[Hashable, bytes] = {}
        self._has_begun = False
        self._has_news = asyncio.Event()
        self.is_over = False

    def begin(self) -> None:
        """Announce that from now on nothing is left out."""
        self._has_begun = True
        self._has_news.set()

    def push(self, key: Hashable, event: bytes) -> bool:
        """Take an event; return False and end if the listener is too slow."""
        self._waiting[key] = event
        if len(self._waiting) > self._bounds.waiting_max:
            self.end()
            return False
        self._has_news.set()
        return True

    def end(self) -> None:
        self.is_over = True
        self._waiting.clear()
        self._has_news.set()

    async def stream_updates(self) -> AsyncGenerator[bytes]:
        clock = asyncio.get_running_loop()
        ends_at = clock.time() + self._bounds.seconds_max
        yield BEGINNING
        while not self.is_over and clock.time() < ends_at:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._bounds.heartbeat_seconds):
                    await self._has_news.wait()
            if self.is_over:
                break
            if not self._has_news.is_set():
                yield HEARTBEAT
                continue
            yield self._take()
            await asyncio.sleep(PAUSE_SECONDS)

    def _take(self) -> bytes:
        parts = [LISTENING] if self._has_begun else []
        parts += self._waiting.values()
        self._waiting.clear()
        self._has_begun = False
        self._has_news.clear()
        return b"".join(parts)


L = TypeVar("L", bound=EventListener)


class EventFeed(Generic[L]):
    """The listeners of one kind of events; what forwards events runs while there are some."""

    def __init__(
        self,
        *,
        subject: str,
        listeners_max: int = LISTENERS_MAX,
        listeners_per_caller_max: int = LISTENERS_PER_CALLER_MAX,
    ) -> None:
        self._subject = subject
        self._listeners_max = listeners_max
        self._listeners_per_caller_max = listeners_per_caller_max
        self._listeners: set[L] = set()
        self._is_wanted = asyncio.Event()
        self._is_unwanted = asyncio.Event()
        self._is_listening = False
        self._is_closed = False
        # A plain counter, read by a collector.
        self.cut_off = 0

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    @contextlib.asynccontextmanager
    async def run_meanwhile(self, forward: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
        """Forward events until the block ends, and end all streams then."""
        forwarding = asyncio.ensure_future(forward)
        try:
            yield
        finally:
            self.close()
            forwarding.cancel()
            await asyncio.wait([forwarding])

    def close(self) -> None:
        """End all streams, and accept no more."""
        self._is_closed = True
        for listener in self._listeners:
            listener.end()

    def check_room(self, caller: str = "") -> None:
        """Raise where too many listen, or too many of one caller."""
        if sum(one.caller == caller for one in self._listeners) >= self._listeners_per_caller_max:
            raise RateLimitedError(
                f"Too many of your programs listen to {self._subject}. Close one first.",
                retry_after_seconds=60,
            )
        if self._is_closed or len(self._listeners) >= self._listeners_max:
            raise UnavailableError(f"Too many listen to {self._subject}. Ask for it now and then instead.")

    @contextlib.contextmanager
    def listen(self, listener: L) -> Generator[None]:
        self._listeners.add(listener)
        self._is_unwanted.clear()
        self._is_wanted.set()
        if self._is_closed:
            listener.end()
        elif self._is_listening:
            listener.begin()
        try:
            yield
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._is_wanted.clear()
                self._is_unwanted.set()

    def _push(self, listener: L, key: Hashable, event: bytes) -> None:
        if not listener.is_over and not listener.push(key, event):
            self.cut_off += 1
