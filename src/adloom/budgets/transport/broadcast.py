"""Publishing what budget actors say over Valkey: one message a channel, however much there is to say on it."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from adloom.budgets.transport.wire import BudgetUpdate, encode_updates, topic_channel
from adloom.runtime.valkey import Valkey


class ValkeyBroadcaster:
    """Whoever listens to the channels."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """Tell whoever listens, in one round trip."""
        by_topic: dict[str, list[BudgetUpdate]] = {}
        for topic, message in said:
            by_topic.setdefault(topic, []).append(cast("BudgetUpdate", message))
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, news in by_topic.items():
                # The stubs have each call wait for its own answer.
                cast("Any", at_once).publish(topic_channel(topic), encode_updates(news))
            await at_once.execute()
