"""Publishing what brains say over Valkey: one message a channel, however much there is to say on it."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from adloom.budgets.transport.wire import News, encode_news, topic_channel
from adloom.runtime.valkey import Valkey


class ValkeyAudience:
    """Whoever listens to the channels."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def publish(self, said: Sequence[tuple[str, msgspec.Struct]]) -> None:
        """Tell whoever listens, in one round trip."""
        by_topic: dict[str, list[News]] = {}
        for topic, message in said:
            by_topic.setdefault(topic, []).append(cast("News", message))
        async with self._valkey.pipeline(transaction=False) as at_once:
            for topic, news in by_topic.items():
                # The stubs have each call wait for its own answer.
                cast("Any", at_once).publish(topic_channel(topic), encode_news(news))
            await at_once.execute()
