"""Subscriptions: they share a connection, and begin again when Valkey was away."""

import asyncio
from collections.abc import Awaitable
from urllib.parse import urlsplit

from structlog.testing import capture_logs

from adloom.runtime.ports import find_port
from adloom.runtime.valkey import RETRY_SECONDS, Subscription, Valkey, open_valkey
from tests.support.eventually import becomes, eventually
from tests.support.relay import Relay


async def test_an_interruption_is_logged_once_however_often_it_is_tried() -> None:
    async with open_valkey(f"redis://127.0.0.1:{find_port()}") as valkey:
        subscription = Subscription(valkey, "news", on_message=lambda _: None, on_start=lambda: None)
        stop = asyncio.Event()
        with capture_logs() as lines:
            running = asyncio.ensure_future(subscription.run(stop))
            await asyncio.sleep(3 * RETRY_SECONDS)
            stop.set()
            await running

    assert [line["event"] for line in lines] == ["subscription_interrupted"]


class Listener:
    """Runs a subscription, and keeps what it hears."""

    def __init__(self, valkey: Valkey, channel: str, *, fails: bool = False) -> None:
        self.heard: list[bytes] = []
        self.begun = 0
        self.fails = fails
        self.stop = asyncio.Event()
        self.subscription = Subscription(valkey, channel, on_message=self._hear, on_start=self._begin)
        self.running = asyncio.ensure_future(self.subscription.run(self.stop))

    def _hear(self, data: bytes) -> None:
        if self.fails:
            raise ValueError("odd")
        self.heard.append(data)

    def _begin(self) -> None:
        self.begun += 1

    async def end(self) -> None:
        self.stop.set()
        await self.running


async def test_subscriptions_of_a_client_share_a_connection_and_each_hears_its_own(
    valkey: Valkey, redis_url: str
) -> None:
    async def count(channel: str) -> int:
        return (await valkey.pubsub_numsub(channel))[0][1]

    async def list_subscribed() -> list[str]:
        return [one["id"] for one in await valkey.client_list(_type="pubsub") if one["id"] not in before]

    before: list[str] = []
    before = await list_subscribed()
    async with open_valkey(redis_url) as client:
        odd, first, other = (
            Listener(client, "news", fails=True),
            Listener(client, "news"),
            Listener(client, "else"),
        )
        await eventually(lambda: first.begun == other.begun == odd.begun == 1, seconds=30)
        late = Listener(client, "news")  # The channel is there already.
        await eventually(lambda: late.begun == 1, seconds=30)
        (connection,) = await list_subscribed()

        with capture_logs() as lines:
            assert await valkey.publish("news", b"1") == 1
            assert await valkey.publish("else", b"2") == 1
            await eventually(lambda: bool(other.heard), seconds=30)
        assert (first.heard, late.heard, other.heard) == ([b"1"], [b"1"], [b"2"])
        assert [line["event"] for line in lines] == ["subscription_message_failed"]

        # A channel is left with the last who listens to it, and can be listened to again.
        await other.end()
        await becomes(lambda: _is(count("else"), 0), seconds=30)
        again = Listener(client, "else")
        await odd.end()
        await first.end()
        await eventually(lambda: again.begun == 1, seconds=30)
        await valkey.publish("news", b"3")
        await valkey.publish("else", b"4")
        await eventually(lambda: late.heard == [b"1", b"3"] and again.heard == [b"4"], seconds=30)
        assert (first.heard, other.heard) == ([b"1"], [b"2"])

        # A connection that breaks begins again for all.
        await valkey.client_kill_filter(_id=connection)
        await eventually(lambda: late.begun == again.begun == 2, seconds=30)
        assert late.subscription.is_listening
        assert not first.subscription.is_listening

        await asyncio.gather(late.end(), again.end())
        await becomes(lambda: _is(list_subscribed(), []), seconds=30)

        # After the last has ended, another begins as the first did.
        last = Listener(client, "news")
        await eventually(lambda: last.begun == 1, seconds=30)
        last.running.cancel()
        await asyncio.wait([last.running])
        await becomes(lambda: _is(list_subscribed(), []), seconds=30)


async def test_subscriptions_that_begin_and_end_while_the_connection_is_being_made(redis_url: str) -> None:
    address = urlsplit(redis_url)
    assert address.port is not None
    async with Relay(address.port).running() as relay:
        relay.cut()
        place = f"{address.username or ''}:{address.password}@127.0.0.1:{relay.port}"
        async with open_valkey(f"redis://{place}", answer_seconds_max=1) as client:
            first = Listener(client, "news")
            await eventually(lambda: relay.connections == 1, seconds=30)
            others = [Listener(client, channel) for channel in ("else", "other", "news")]
            await eventually(lambda: relay.connections == 3 or first.running.done(), seconds=30)
            assert not any(one.running.done() for one in (first, *others))
            await asyncio.gather(first.end(), others[0].end())

            relay.mend()
            await eventually(lambda: others[1].begun == others[2].begun == 1, seconds=30)
            await asyncio.gather(*(one.end() for one in others[1:]))


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted
