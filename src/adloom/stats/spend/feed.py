"""Spend updates as server-sent events: the listeners of this process, over one subscription."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from datetime import date
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.messages import SpendUpdate
from adloom.budgets.transport.wire import SPEND_CHANNEL, decode_updates
from adloom.core.errors import RateLimitedError, UnavailableError
from adloom.core.money import paisa_from_micros
from adloom.runtime.valkey import Subscription, Valkey

# When a client should reconnect after its stream has ended, in milliseconds.
BEGINNING: Final = b"retry: 1000\n\n"
# From here on nothing is left out; earlier updates are unknown.
LISTENING: Final = b"event: listening\ndata: {}\n\n"
HEARTBEAT: Final = b": still here\n\n"


class SpendEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The budget state of a campaign."""

    campaign_id: UUID
    advertiser_id: UUID | None
    day: date
    spent_today_paisa: int
    spent_total_paisa: int
    held_paisa: int
    leased_paisa: int


_encode = msgspec.json.Encoder().encode


def encode_update(update: SpendUpdate) -> bytes:
    event = SpendEvent(
        campaign_id=update.campaign_id,
        advertiser_id=update.advertiser_id,
        day=update.day,
        spent_today_paisa=paisa_from_micros(update.spent_today),
        spent_total_paisa=paisa_from_micros(update.spent_total),
        held_paisa=paisa_from_micros(update.held),
        leased_paisa=paisa_from_micros(update.leased),
    )
    return b"event: spend\ndata: " + _encode(event) + b"\n\n"


HEARTBEAT_SECONDS: Final = 15.0
# A campaign may report hundreds of times a second; only the last state matters.
PAUSE_SECONDS: Final = 0.25
# Access is checked when a stream begins; this bound makes clients ask again.
LISTENING_SECONDS_MAX: Final = 900.0
WAITING_MAX: Final = 10_000


class Listener:
    """Receives updates of one account's campaigns, or of all; only the last of each campaign waits."""

    def __init__(
        self,
        account_id: UUID | None,
        *,
        actor: str = "",
        waiting_max: int = WAITING_MAX,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        seconds_max: float = LISTENING_SECONDS_MAX,
    ) -> None:
        self._account_id = account_id
        self.actor = actor
        self._waiting_max = waiting_max
        self._heartbeat_seconds = heartbeat_seconds
        self._seconds_max = seconds_max
        self._waiting: dict[UUID, bytes] = {}
        self._has_begun = False
        self._has_news = asyncio.Event()
        self.is_over = False

    def may_see(self, advertiser_id: UUID | None) -> bool:
        return self._account_id is None or self._account_id == advertiser_id

    def begin(self) -> None:
        """Announce that from now on nothing is left out."""
        self._has_begun = True
        self._has_news.set()

    def push(self, campaign_id: UUID, event: bytes) -> bool:
        """Take an update; return False and end if the listener is too slow."""
        self._waiting[campaign_id] = event
        if len(self._waiting) > self._waiting_max:
            self.end()
            return False
        self._has_news.set()
        return True

    def end(self) -> None:
        self.is_over = True
        self._waiting.clear()
        self._has_news.set()

    async def updates(self) -> AsyncGenerator[bytes]:
        clock = asyncio.get_running_loop()
        ends_at = clock.time() + self._seconds_max
        yield BEGINNING
        while not self.is_over and clock.time() < ends_at:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat_seconds):
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


LISTENERS_MAX: Final = 200
LISTENERS_PER_ACTOR_MAX: Final = 20


class SpendFeed:
    """Subscribes to spend updates while it has listeners."""

    def __init__(
        self, *, listeners_max: int = LISTENERS_MAX, listeners_per_actor_max: int = LISTENERS_PER_ACTOR_MAX
    ) -> None:
        self._listeners_max = listeners_max
        self._listeners_per_actor_max = listeners_per_actor_max
        self._listeners: set[Listener] = set()
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
    async def run(self, valkey: Valkey) -> AsyncGenerator[None]:
        forwarding = asyncio.ensure_future(self._forward(valkey))
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

    def check_room(self, actor: str = "") -> None:
        """Raise where too many listen, or too many of one actor."""
        if sum(one.actor == actor for one in self._listeners) >= self._listeners_per_actor_max:
            raise RateLimitedError(
                "Too many of your programs listen to what is spent. Close one first.", retry_after_seconds=60
            )
        if self._is_closed or len(self._listeners) >= self._listeners_max:
            raise UnavailableError("Too many listen to what is spent. Read the budgets instead.")

    @contextlib.contextmanager
    def listen(self, listener: Listener) -> Generator[None]:
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

    def distribute(self, data: bytes) -> None:
        for news in decode_updates(data):
            if isinstance(news, SpendUpdate):
                self._push(news)

    async def _forward(self, valkey: Valkey) -> None:
        subscription = Subscription(valkey, SPEND_CHANNEL, heard=self.distribute, began=self._began)
        while True:
            await self._is_wanted.wait()
            await subscription.run(self._is_unwanted)
            self._is_listening = False

    def _began(self) -> None:
        """Tell all listeners that nothing is left out from now on, also after a reconnect."""
        self._is_listening = True
        for listener in self._listeners:
            listener.begin()

    def _push(self, update: SpendUpdate) -> None:
        concerned = [one for one in self._listeners if not one.is_over and one.may_see(update.advertiser_id)]
        if not concerned:
            return
        event = encode_update(update)
        for listener in concerned:
            if not listener.push(update.campaign_id, event):
                self.cut_off += 1
