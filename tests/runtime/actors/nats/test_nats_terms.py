"""Actors without stored states, on several machines: the term of their shard decides whose rows count."""

import asyncio

import pytest

from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.runtime.actors.actor import ActorCounts, ActorKind, find_shard
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.nats.messages import SentMessage, split_groups
from adloom.runtime.actors.nats.runner import ActorFamily, ShardRunner
from adloom.runtime.actors.nats.store import ShardStore, maintain_days
from adloom.runtime.postgres import Pool
from simulation.loop import make_random
from tests.support.actors import TALLY, Add, Catalog, Count, Listeners, Tally, Woken, a_tally, tally_step
from tests.support.nats import Rows, SharedWorker

pytestmark = pytest.mark.server

TRANSIENT = ActorKind(
    "tally",
    Tally,
    tally_step,
    lambda key, _: Tally(key),
    on_waking=Woken(),
    is_transient=True,
    messages=Add | Woken,
    replies=Count,
)


class TransientWorker:
    """A runner without NATS; the number of rows is what its actors begin with."""

    def __init__(self, pool: Pool, catalog: Catalog) -> None:
        self.counts = ActorCounts()
        self.sent: list[SentMessage] = []
        self.given_up: list[int] = []
        self.runner = ShardRunner(
            ActorFamily(
                kinds=[TRANSIENT],
                store=ShardStore(pool, Rows(), SystemClock()),
                introduction=catalog,
                audience=Listeners(),
            ),
            clock=SystemClock(),
            chance=make_random(1, "entities"),
            ids=SystemIds(),
            counts=self.counts,
            send=self.sent.extend,
            find_kind={"tally": TRANSIENT, "stored": TALLY}.get,
            give_up=self.given_up.append,
        )

    async def record(self, number: int, key: str = "a") -> int:
        answered = asyncio.get_running_loop().create_future()
        await self.runner.run([Envelope(a_tally(key), Add(records=(number,)), answered=answered)])
        count: Count = await answered
        return count.count


@pytest.fixture
async def database(tables: Pool) -> Pool:
    await tables.execute("TRUNCATE brain_shard_terms")
    await maintain_days(tables, SystemClock().now().date())
    return tables


async def test_a_late_worker_writes_nothing_from_what_it_held(database: Pool) -> None:
    catalog = Catalog()
    old, new = TransientWorker(database, catalog), TransientWorker(database, catalog)
    assert await old.record(1) == 1
    assert await old.record(1, "b") == 1
    catalog.introductions[a_tally()] = [Add(amount=10, is_kept=False)]  # What the tables say by now.

    assert await new.record(2) == 11
    assert await new.record(3) == 12
    # It read the tables again, in a term of its own.
    assert await old.record(4) == 11
    assert await old.record(2, "b") == 2  # Of another shard, which nobody took.
    assert await new.record(5) == 11

    assert (old.counts.fenced, new.counts.fenced, old.given_up, new.given_up) == (1, 1, [], [])
    rows = await database.fetch("SELECT number FROM test_rows WHERE key = 'a' ORDER BY number")
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]


async def test_all_actors_of_a_shard_that_was_taken_are_loaded_again(database: Pool) -> None:
    other = next(
        key for number in range(10_000) if find_shard(a_tally(key := f"k{number}")) == find_shard(a_tally())
    )
    catalog = Catalog()
    old, new = TransientWorker(database, catalog), TransientWorker(database, catalog)
    await old.record(1)
    await old.record(1, other)
    await new.record(2)

    await old.record(3)

    assert len(old.runner) == 1
    assert await old.record(2, other) == 1


async def test_only_messages_to_stored_actors_are_in_the_outbox(database: Pool) -> None:
    worker = TransientWorker(database, Catalog())
    onward = ((a_tally("b"), Add()), (a_tally("c")._replace(kind="stored"), Add()))

    await worker.runner.run([Envelope(a_tally(), Add(messages=onward, records=(1,)))])

    assert [(one.key, one.is_exact) for one in worker.sent] == [("b", False), ("c", True)]
    assert await database.fetchval("SELECT array_agg(id) FROM brain_outbox") == [worker.sent[1].id]


async def test_a_fresh_message_has_an_actor_read_anew(nats_url: str, database: Pool) -> None:
    catalog = Catalog()
    worker = SharedWorker(nats_url, database, kinds=[TRANSIENT], catalog=catalog)
    async with worker.running() as one:
        assert (await one.sender.ask(a_tally(), Add(), seconds_max=10)).count == 1
        catalog.introductions[a_tally()] = [Add(amount=10, is_kept=False)]
        assert (await one.sender.ask(a_tally(), Add(), seconds_max=10)).count == 2

        assert one.sender.tell(a_tally(), Add(), is_fresh=True)

        assert (await one.sender.ask(a_tally(), Add(), seconds_max=10)).count == 12
        # Larger than what NATS takes: it is refused at once, and holds nothing up.
        assert not one.sender.tell(a_tally(), Add(publishes="x" * 9 * 2**20))
        assert (one.sender.refused, one.sender.waiting) == (1, 0)


def test_a_large_message_goes_alone() -> None:
    ids = SystemIds()
    sizes = (10, 300_000, 10, 200_000, 100_000, 10)
    messages = [SentMessage(ids.make(), "tally", "a", bytes(size)) for size in sizes]

    assert [[len(one.body) for one in group] for group in split_groups(messages)] == [
        [10],
        [300_000],
        [10, 200_000],
        [100_000, 10],
    ]
