"""Distributes spend updates to the listeners of this process, over one subscription."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from typing import Final

from adloom.budgets.messages import SpendUpdate
from adloom.budgets.transport.wire import SPEND_CHANNEL, decode_updates
from adloom.core.errors import UnavailableError
from adloom.runtime.valkey import Subscription, Valkey
from adloom.stats.spend.event import encode_update
from adloom.stats.spend.listener import Listener

LISTENERS_MAX: Final = 200


class SpendFeed:
    """Subscribes to spend updates while it has listeners."""

    def __init__(self, *, listeners_max: int = LISTENERS_MAX) -> None:
        self._listeners_max = listeners_max
        self._listeners: set[Listener] = set()
        self._is_wanted = asyncio.Event()
        self._is_unwanted = asyncio.Event()
        self._is_listening = False
        self._is_closed = False
        # A plain counter, read by a collector.
        self.cut_off = 0

    @property
    def listeners(self) -> int:
        """Number of listeners."""
        return len(self._listeners)

    @contextlib.asynccontextmanager
    async def run(self, valkey: Valkey) -> AsyncGenerator[None]:
        """Distribute updates while the block runs."""
        handing_on = asyncio.ensure_future(self._hand_on(valkey))
        try:
            yield
        finally:
            self.close()
            handing_on.cancel()
            await asyncio.wait([handing_on])

    def close(self) -> None:
        """End all streams, and accept no more."""
        self._is_closed = True
        for listener in self._listeners:
            listener.end()

    def check_room(self) -> None:
        """Refuse a listener beyond the maximum."""
        if self._is_closed or len(self._listeners) >= self._listeners_max:
            raise UnavailableError("Too many listen to what is spent. Read the budgets instead.")

    @contextlib.contextmanager
    def listen(self, listener: Listener) -> Generator[None]:
        """Add a listener while the block runs."""
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
        """Distribute updates."""
        for news in decode_updates(data):
            if isinstance(news, SpendUpdate):
                self._tell(news)

    async def _hand_on(self, valkey: Valkey) -> None:
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

    def _tell(self, update: SpendUpdate) -> None:
        concerned = [one for one in self._listeners if not one.is_over and one.may_see(update.advertiser_id)]
        if not concerned:
            return
        event = encode_update(update)
        for listener in concerned:
            if not listener.push(update.campaign_id, event):
                self.cut_off += 1
