"""Spend updates as server-sent events: the listeners of this process, over one subscription."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import date
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.messages import SpendUpdate
from adloom.budgets.transport.wire import SPEND_CHANNEL, decode_updates
from adloom.core.money import paisa_from_micros
from adloom.runtime.http.event_feed import LISTENERS_MAX, EventFeed, EventListener, ListenerBounds
from adloom.runtime.valkey import Subscription, Valkey

BOUNDS: Final = ListenerBounds()


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


class SpendListener(EventListener):
    """Receives updates of one account's campaigns, or of all."""

    def __init__(self, account_id: UUID | None, *, caller: str = "", bounds: ListenerBounds = BOUNDS) -> None:
        super().__init__(caller=caller, bounds=bounds)
        self._account_id = account_id

    def may_see(self, advertiser_id: UUID | None) -> bool:
        return self._account_id is None or self._account_id == advertiser_id


class SpendFeed(EventFeed[SpendListener]):
    """Subscribes to spend updates while it has listeners."""

    def __init__(self, *, listeners_max: int = LISTENERS_MAX) -> None:
        super().__init__(subject="what is spent", listeners_max=listeners_max)

    @contextlib.asynccontextmanager
    async def run(self, valkey: Valkey) -> AsyncGenerator[None]:
        async with self.run_meanwhile(self._forward(valkey)):
            yield

    def distribute(self, data: bytes) -> None:
        for news in decode_updates(data):
            if isinstance(news, SpendUpdate):
                self._push_update(news)

    async def _forward(self, valkey: Valkey) -> None:
        subscription = Subscription(valkey, SPEND_CHANNEL, on_message=self.distribute, on_start=self._begin)
        while True:
            await self._is_wanted.wait()
            await subscription.run(self._is_unwanted)
            self._is_listening = False

    def _begin(self) -> None:
        """Tell all listeners that nothing is left out from now on, also after a reconnect."""
        self._is_listening = True
        for listener in self._listeners:
            listener.begin()

    def _push_update(self, update: SpendUpdate) -> None:
        concerned = [one for one in self._listeners if not one.is_over and one.may_see(update.advertiser_id)]
        if not concerned:
            return
        event = encode_update(update)
        for listener in concerned:
            self._push(listener, update.campaign_id, event)
