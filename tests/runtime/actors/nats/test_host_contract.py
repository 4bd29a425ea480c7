"""What every host of actors does, in one process or on NATS: the kinds do not know which runs them."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Protocol

import msgspec
import pytest

from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from simulation.loop import make_random
from tests.support.actors import TALLY, Add, Catalog, Count, Listeners, Nap, Tally, a_tally
from tests.support.eventually import becomes, eventually
from tests.support.nats import Rows, SharedWorker, load_tallies

KINDS = ("process", "nats")


class HostUnderTest(Protocol):
    def tell(self, address: Address, message: msgspec.Struct) -> bool: ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]": ...

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> Any: ...


class Contract:
    """A host and what is around it."""

    def __init__(self, kind: str, url: str, pool: Pool) -> None:
        self.pool = pool
        self.catalog = Catalog()
        self.stop = asyncio.Event()
        self.host: HostUnderTest
        if kind == "process":
            self.listeners = Listeners()
            self._local = ActorHost(
                [TALLY],
                PostgresStateStore(pool, Rows(), SystemClock()),
                introduction=self.catalog,
                audience=self.listeners,
                clock=SystemClock(),
                chance=make_random(1, "entities"),
            )
            self.host, self._run = self._local, self._local.run
            self._is_ready = lambda: self._local.is_open
        else:
            worker = SharedWorker(url, pool, catalog=self.catalog)
            self.listeners = worker.listeners
            self.host, self._run = worker.sender, worker.link.run
            self._is_ready = lambda: worker.shards == 100

    async def run(self) -> "asyncio.Task[None]":
        running = asyncio.get_running_loop().create_task(self._run(self.stop))
        await eventually(self._is_ready, seconds=30)
        return running

    async def ask(self, message: Add, key: str = "a") -> int:
        answer: Count = await self.host.ask(a_tally(key), message, seconds_max=10)
        return answer.count

    async def tallies(self) -> dict[str, Tally]:
        return await load_tallies(self.pool)

    async def wait_for_count(self, key: str, count: int) -> None:
        async def is_reached() -> bool:
            return await self.ask(Add(amount=0, is_kept=False), key) == count

        await becomes(is_reached, seconds=30)


@pytest.fixture(params=KINDS)
async def contract(request: pytest.FixtureRequest, nats_url: str, tables: Pool) -> AsyncIterator[Contract]:
    contract = Contract(request.param, nats_url, tables)
    running = await contract.run()
    yield contract
    contract.stop.set()
    await running


async def test_an_ask_is_answered_when_the_state_is_stored(contract: Contract) -> None:
    assert await contract.ask(Add(amount=3)) == 3
    assert await contract.ask(Add(amount=4)) == 7

    assert (await contract.tallies())["a"].count == 7


async def test_a_durable_message_is_stored_when_its_future_is_done(contract: Contract) -> None:
    await asyncio.gather(*(contract.host.send_durably(a_tally(f"k{n}"), Add(amount=n)) for n in range(50)))

    assert {key: one.count for key, one in (await contract.tallies()).items()} == {
        f"k{n}": n for n in range(50)
    }


async def test_messages_to_one_actor_are_applied_in_their_order(contract: Contract) -> None:
    for number in range(100):
        assert contract.host.tell(a_tally(), Add(amount=number, is_kept=number % 7 == 0))

    await contract.ask(Add(amount=0))

    assert (await contract.tallies())["a"].received == (*range(100), 0)


async def test_a_message_that_fails_fails_alone(contract: Contract) -> None:
    good = contract.host.send_durably(a_tally("b"), Add(amount=1))
    bad = contract.host.send_durably(a_tally("a"), Add(fails=True))

    with pytest.raises(UnavailableError):
        await bad
    await good

    assert await contract.ask(Add(amount=1)) == 1


async def test_a_row_that_no_table_takes_fails_alone(contract: Contract) -> None:
    await contract.ask(Add(records=(1,)))

    results = await asyncio.gather(
        *(
            contract.host.send_durably(a_tally(key), Add(amount=1, records=records))
            for key, records in (("a", (1,)), ("b", (2,)), ("c", (3,)))
        ),
        return_exceptions=True,
    )

    assert [isinstance(one, UnavailableError) for one in results] == [True, False, False]
    rows = await contract.pool.fetch("SELECT key, number FROM test_rows ORDER BY key, number")
    assert [tuple(row) for row in rows] == [("a", 1), ("b", 2), ("c", 3)]
    assert (await contract.tallies())["a"].count == 1


async def test_actors_send_each_other_messages(contract: Contract) -> None:
    onward = tuple((a_tally(f"to{n}"), Add(amount=n)) for n in range(5))

    await contract.host.send_durably(a_tally("from"), Add(messages=onward))

    for number in range(5):
        await contract.wait_for_count(f"to{number}", number)


async def test_an_alarm_wakes_its_actor(contract: Contract) -> None:
    now = SystemClock().now()

    contract.host.tell(a_tally(), Nap(now + timedelta(seconds=0.1)))
    contract.host.tell(a_tally("b"), Nap(now + timedelta(hours=1)))

    async def is_woken() -> bool:
        found = (await contract.tallies()).get("a")
        return found is not None and bool(found.woken_at)

    await becomes(is_woken, seconds=30)
    assert "b" not in await contract.tallies()


async def test_a_broadcast_follows_the_commit(contract: Contract) -> None:
    await contract.ask(Add(amount=2, publishes="news"))

    await eventually(lambda: contract.listeners.received == [("news", Count(2))], seconds=30)


async def test_first_messages_come_before_all_others(contract: Contract) -> None:
    contract.catalog.introductions[a_tally()] = [Add(amount=100, is_kept=False)]

    assert await contract.ask(Add(amount=1)) == 101


async def test_what_was_told_is_stored_when_the_host_stops(contract: Contract) -> None:
    contract.host.tell(a_tally(), Add(amount=5, is_kept=False, replies=False))
    await contract.ask(Add(amount=0, is_kept=False), "b")
    await contract.wait_for_count("a", 5)

    contract.stop.set()

    async def is_stored() -> bool:
        return "a" in await contract.tallies()

    await becomes(is_stored, seconds=30)

    assert (await contract.tallies())["a"].count == 5


def _message_log(seed: int, *, messages: int) -> list[tuple[Address, Add]]:
    """A log of messages that commute, so that the order in which actors hear each other does not matter."""
    chance = random.Random(seed)  # noqa: S311 - seeded, so that runs repeat
    log: list[tuple[Address, Add]] = []
    for number in range(messages):
        onward = tuple(
            (a_tally(f"k{chance.randrange(20)}"), Add(amount=chance.randrange(1_000), replies=False))
            for _ in range(chance.choice((0, 0, 1, 3)))
        )
        amount = chance.randrange(1_000)
        log.append(
            (
                a_tally(f"k{chance.randrange(20)}"),
                Add(amount=amount, is_kept=chance.random() < 0.5, messages=onward, records=(number,)),
            )
        )
    return log


def _sums(tallies: dict[str, Tally]) -> dict[str, tuple[int, list[int]]]:
    return {key: (one.count, sorted(one.received)) for key, one in tallies.items()}


async def test_the_same_messages_come_to_the_same_states_on_every_host(nats_url: str, tables: Pool) -> None:
    log = _message_log(1, messages=150)
    expected: dict[str, list[int]] = {}
    for address, message in log:
        for to, one in ((address, message), *message.messages):
            expected.setdefault(to.key, []).append(one.amount)

    wanted = {key: (sum(its), sorted(its)) for key, its in expected.items()}

    for kind in KINDS:
        contract = Contract(kind, nats_url, tables)
        running = await contract.run()
        await asyncio.gather(*(contract.host.send_durably(*one) for one in log))
        async with asyncio.timeout(60):
            # The last messages between actors are on their way.
            while _sums(await contract.tallies()) != wanted:  # noqa: ASYNC110 - the database sends no notice
                await asyncio.sleep(0.05)
        contract.stop.set()
        await running
        await tables.execute("TRUNCATE brain_states, test_rows")
