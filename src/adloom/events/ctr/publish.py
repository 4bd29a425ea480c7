"""Publishes models to delivery processes: one key in Valkey, and a notice on a channel when it has changed."""

import asyncio
from typing import Final

from adloom.auction.model import Model, encode_model
from adloom.runtime.valkey import Valkey, raise_if_away

MODEL: Final = "adloom:scoring:model"
MODEL_NOTICES: Final = "adloom:scoring:notices"


class ModelPublisher:
    """Publishes models."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self.bytes = 0
        self.published = 0

    async def publish(self, model: Model) -> None:
        blob = await asyncio.to_thread(encode_model, model)
        with raise_if_away():
            async with self._valkey.pipeline(transaction=True) as at_once:
                at_once.set(MODEL, blob)
                at_once.publish(MODEL_NOTICES, str(model.version))
                await at_once.execute()
        self.bytes = len(blob)
        self.published += 1

    async def is_published(self) -> bool:
        """Return whether there is a model; Valkey may have lost it."""
        with raise_if_away():
            return bool(await self._valkey.exists(MODEL))
