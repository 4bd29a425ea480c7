"""Publishes updates of budget actors over Valkey."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from adloom.budgets.transport.wire import BudgetUpdate, encode_updates, topic_channel
from adloom.runtime.valkey import Valkey


class ValkeyBroadcaster:
    """Publishes to all listeners of a channel."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """One round trip, one message per channel."""
        by_topic: dict[str, list[BudgetUpdate]] = {}
        for topic, message in said:
            by_topic.setdefault(topic, []).append(cast("BudgetUpdate", message))
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, news in by_topic.items():
                # The stubs have each call wait for its own answer.
                cast("Any", at_once).publish(topic_channel(topic), encode_updates(news))
            await at_once.execute()
