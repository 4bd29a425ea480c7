"""JetStream's pinned consumers do what we rely on: a contract with the real server."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.nats import pinned
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.pinned import Delivered, PullEnded, PullStatus
from adloom.runtime.actors.nats.ports import Received
from tests.support.eventually import becomes
from tests.support.nats_server import connected


class Puller:
    """A client that pulls shard 7."""

    def __init__(self, connection: NatsConnection, name: str) -> None:
        self.connection = connection
        self.inbox = f"_INBOX.{name}"
        self.heard: asyncio.Queue[Delivered | PullEnded] = asyncio.Queue()

    async def _hear(self, received: Received) -> None:
        self.heard.put_nowait(pinned.read_pulled(received))

    async def open(self) -> "Puller":
        await self.connection.subscribe(f"{self.inbox}.*", self._hear)
        return self

    async def pull(self, *, pin: str | None = None, seconds: float = 5.0, count_max: int = 10) -> None:
        await pinned.pull(self.connection, 7, inbox=self.inbox, pin=pin, count_max=count_max, seconds=seconds)

    async def next(self) -> Delivered | PullEnded:
        return await asyncio.wait_for(self.heard.get(), 60)

    async def next_message(self) -> Delivered:
        found = await self.next()
        assert isinstance(found, Delivered)
        return found


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[NatsConnection]:
    async with connected(nats_url) as connection:
        await pinned.ensure_stream(connection)
        yield connection


@pytest.fixture
async def pullers(connection: NatsConnection) -> tuple[Puller, Puller]:
    return await Puller(connection, "a").open(), await Puller(connection, "b").open()


async def test_making_the_stream_again_changes_nothing(connection: NatsConnection) -> None:
    await pinned.ensure_stream(connection)


async def test_all_messages_of_a_shard_go_to_the_client_that_got_the_first(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, second = pullers
    await first.pull()
    await second.pull()

    for data in (b"1", b"2"):
        await connection.publish("brain.7", data)
    found = [await first.next_message(), await first.next_message()]

    assert [one.data for one in found] == [b"1", b"2"]
    assert found[0].pin
    assert found[0].pin == found[1].pin
    assert (found[0].shard, found[0].times, found[1].pending) == (7, 1, 0)
    assert second.heard.empty()


async def test_a_client_with_another_pin_hears_that_it_has_lost_it(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, second = pullers
    await first.pull()
    await connection.publish("brain.7", b"1")
    await first.next_message()

    await second.pull(pin="of-another-time")

    assert await second.next() == PullEnded(7, PullStatus.OTHER_PINNED)


async def test_after_an_unpin_the_next_message_pins_another_client(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, second = pullers
    await first.pull()
    await connection.publish("brain.7", b"1")
    lost = (await first.next_message()).pin
    await pinned.unpin(connection, 7)

    await second.pull()
    await connection.publish("brain.7", b"2")
    got = await second.next_message()

    assert got.data == b"2"
    assert got.pin != lost
    assert await first.next() == PullEnded(7, PullStatus.OTHER_PINNED)


async def test_a_pinned_client_that_pulls_keeps_its_pin_without_messages(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, second = pullers
    await first.pull(count_max=1)
    await connection.publish("brain.7", b"1")
    pin = (await first.next_message()).pin
    await second.pull(seconds=20)

    for _ in range(3):
        await first.pull(pin=pin, seconds=1)
        assert await first.next() == PullEnded(7, PullStatus.ENDED)
    await first.pull(pin=pin)
    await connection.publish("brain.7", b"2")

    assert (await first.next_message()).pin == pin


async def test_a_message_that_was_not_acknowledged_comes_again(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, _ = pullers
    await first.pull()
    await connection.publish("brain.7", b"1")
    delivered = await first.next_message()

    await connection.publish(delivered.ack_to, pinned.encode_nak(0.01))

    assert (await first.next_message()).times == 2


async def test_a_deleted_stream_is_noticed(
    connection: NatsConnection, pullers: tuple[Puller, Puller]
) -> None:
    first, _ = pullers
    await first.pull()

    async def is_open() -> bool:
        answer = await connection.request(f"$JS.API.CONSUMER.INFO.BRAIN.{pinned.name_consumer(7)}", b"")
        return bool(msgspec.json.decode(answer)["num_waiting"])

    # The server takes pulls and requests side by side.
    await becomes(is_open, seconds=30)
    await connection.request("$JS.API.STREAM.DELETE.BRAIN", b"")

    assert await first.next() == PullEnded(7, PullStatus.GONE)
    await first.pull()
    assert await first.next() == PullEnded(7, PullStatus.GONE)
    await pinned.ensure_stream(connection)


async def test_a_refused_request_says_why(connection: NatsConnection) -> None:
    await connection.request("$JS.API.STREAM.DELETE.BRAIN", b"")

    with pytest.raises(UnavailableError, match=r"NATS does not answer|JetStream"):
        await pinned.unpin(connection, 7)
    await pinned.ensure_stream(connection)
