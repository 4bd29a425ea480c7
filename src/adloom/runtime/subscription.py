"""Listening on a channel of Valkey, for as long as somebody wants to and whatever happens to the connection."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

import structlog
from redis.asyncio.client import PubSub

from adloom.runtime.valkey import VALKEY_AWAY, Valkey

# A subscription that hears nothing for so long asks, and has as long to hear an answer. Otherwise one whose
# other end is gone without a word would listen for ever.
QUIET_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 0.2
CANCEL_AGAIN_SECONDS: Final = 0.1

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Subscription:
    """Hears what is said on one channel; what is said while the connection is broken is lost.

    `began` is called whenever listening has begun, or begun again: what was said before is not known.
    """

    def __init__(
        self,
        valkey: Valkey,
        channel: str,
        *,
        heard: Callable[[bytes], None],
        began: Callable[[], None],
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._valkey = valkey
        self._channel = channel
        self._heard = heard
        self._began = began
        self._quiet_seconds = quiet_seconds

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop."""
        listening = asyncio.ensure_future(self._listen())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([listening, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            # The driver loses a cancellation that meets a connection which is just breaking.
            while not listening.done():
                listening.cancel()
                await asyncio.wait([listening], timeout=CANCEL_AGAIN_SECONDS)
        if not listening.cancelled():
            listening.result()

    async def _listen(self) -> None:
        while True:
            try:
                async with self._valkey.pubsub() as subscription:
                    await subscription.subscribe(self._channel)
                    while True:
                        self._take(await self._next(subscription))
            except VALKEY_AWAY as error:
                log.warning("subscription_interrupted", channel=self._channel, error=repr(error))
                await asyncio.sleep(RETRY_SECONDS)

    def _take(self, message: dict[str, Any]) -> None:
        try:
            if message["type"] == "message":
                self._heard(cast("bytes", message["data"]))
            elif message["type"] == "subscribe":
                self._began()
        except Exception:
            # Whatever somebody says, the next one is heard.
            log.exception("subscription_message_failed", channel=self._channel)

    async def _next(self, subscription: PubSub) -> dict[str, Any]:
        message = await self._message(subscription)
        if message is None:
            await subscription.ping()
            message = await self._message(subscription)
        if message is None:
            raise TimeoutError("Nothing is heard of Valkey.")
        return message

    async def _message(self, subscription: PubSub) -> dict[str, Any] | None:
        # The stubs know every decoding.
        return cast("dict[str, Any] | None", await subscription.get_message(timeout=self._quiet_seconds))
