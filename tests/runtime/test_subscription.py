"""A subscription while Valkey is away."""

import asyncio

from structlog.testing import capture_logs

from adloom.runtime.ports import free_port
from adloom.runtime.valkey import RETRY_SECONDS, Subscription, open_valkey


async def test_an_interruption_is_logged_once_however_often_it_is_tried() -> None:
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as valkey:
        subscription = Subscription(valkey, "news", heard=lambda _: None, began=lambda: None)
        stop = asyncio.Event()
        with capture_logs() as lines:
            running = asyncio.ensure_future(subscription.run(stop))
            await asyncio.sleep(3 * RETRY_SECONDS)
            stop.set()
            await running

    assert [line["event"] for line in lines] == ["subscription_interrupted"]
