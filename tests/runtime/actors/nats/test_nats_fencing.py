"""Two workers that both believe they own an actor: the version of its state decides whose write counts."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from adloom.core.clock import Clock, ManualClock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.runtime.actors.actor import (
    ActorCounts,
    Address,
    AnyKind,
    FencedOutError,
    StateWrite,
    UnreadableActorStateError,
    find_shard,
)
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.nats.messages import SentMessage, is_current, make_first_id
from adloom.runtime.actors.nats.runner import CONFIGURED_AT_ONCE, ActorFamily, ShardRunner
from adloom.runtime.actors.nats.store import ShardCommit, ShardStore, maintain_days
from adloom.runtime.actors.runner import NeverKeptError
from adloom.runtime.postgres import Connection, Pool
from simulation.loop import make_random
from tests.support.actors import START, TALLY, Add, Catalog, Listeners, a_tally, make_tally_kind
from tests.support.nats import Rows, load_tallies

pytestmark = pytest.mark.server


class OneWorker:
    """A runner without NATS: what it would send is noted."""

    def __init__(
        self,
        pool: Pool,
        store: ShardStore | None = None,
        *,
        kind: AnyKind = TALLY,
        clock: Clock | None = None,
        **family: Any,
    ) -> None:
        self.counts = ActorCounts()
        self.sent: list[SentMessage] = []
        self.given_up: list[int] = []
        self.runner = ShardRunner(
            ActorFamily(
                kinds=[kind],
                store=store or ShardStore(pool, Rows(), SystemClock()),
                introduction=Catalog(),
                audience=Listeners(),
                **family,
            ),
            clock=clock or SystemClock(),
            chance=make_random(1, "entities"),
            ids=SystemIds(),
            counts=self.counts,
            send=self.sent.extend,
            find_kind={"tally": kind}.get,
            give_up=self.given_up.append,
        )

    async def add(self, *envelopes: Envelope, is_repeated: bool = False) -> None:
        await self.runner.run(envelopes, is_repeated=is_repeated)


def an_envelope(amount: int = 1, key: str = "a", **options: object) -> Envelope:
    return Envelope(
        a_tally(key),
        Add(amount=amount, is_kept=False, **options),  # pyright: ignore[reportArgumentType]
        durable=asyncio.get_running_loop().create_future(),
        is_kept_after=True,
        id=SystemIds().make(),
    )


@pytest.fixture
async def database(tables: Pool) -> Pool:
    await maintain_days(tables, SystemClock().now().date())
    return tables


async def test_a_late_write_is_refused_and_repeated_on_the_new_state(database: Pool) -> None:
    old, new = OneWorker(database), OneWorker(database)
    await old.add(an_envelope(1), an_envelope(1, "b"))

    await new.add(an_envelope(10))
    late = [an_envelope(100), an_envelope(100, "b"), an_envelope(100, "c")]
    await old.add(*late)

    assert {key: one.count for key, one in (await load_tallies(database)).items()} == {
        "a": 111,
        "b": 101,
        "c": 100,
    }
    assert old.counts.fenced == 1
    assert all(one.durable is not None and one.durable.result() is None for one in late)
    assert old.given_up == []


class VersionlessStore(ShardStore):
    """Writes states whatever version is there, as without the version in the WHERE clause."""

    async def _keep(
        self, connection: Connection, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]
    ) -> None:
        await connection.execute("UPDATE brain_states SET version = 1")
        forced = [msgspec.structs.replace(one, was_version=1) for one in writes]
        await super()._keep(connection, forced, records)


async def test_without_the_version_a_late_write_takes_away_what_others_have_written(database: Pool) -> None:
    """A test of the test before, which would fail."""
    store = VersionlessStore(database, Rows(), SystemClock())
    old, new = OneWorker(database, store), OneWorker(database, store)
    await old.add(an_envelope(1))

    await new.add(an_envelope(10))
    await old.add(an_envelope(100))

    assert (await load_tallies(database))["a"].count == 101


async def test_a_message_that_another_worker_has_applied_is_not_applied_again(database: Pool) -> None:
    old, new = OneWorker(database), OneWorker(database)
    message = an_envelope(5)
    await new.add(message)

    again = message._replace(durable=asyncio.get_running_loop().create_future())
    # This worker does not know that it comes again: the table does.
    await old.add(again, an_envelope(1))

    assert (await load_tallies(database))["a"].count == 6
    assert again.durable is not None
    assert again.durable.done()
    assert old.counts.fenced == 1


async def test_a_message_twice_in_one_batch_is_applied_once(database: Pool) -> None:
    worker = OneWorker(database)
    message = an_envelope(5)
    again = message._replace(durable=asyncio.get_running_loop().create_future())

    await worker.add(message, again)

    assert (await load_tallies(database))["a"].count == 5
    assert again.durable is not None
    assert again.durable.done()


class RefusingStore(ShardStore):
    """Another worker has always written first."""

    async def commit_batch(self, batch: ShardCommit) -> None:
        if refused := [one.address for one in batch.writes if one.address == a_tally()]:
            raise FencedOutError("as asked", refused)
        await super().commit_batch(batch)


async def test_after_three_refusals_the_shard_is_given_up_and_others_are_kept(database: Pool) -> None:
    worker = OneWorker(database, RefusingStore(database, Rows(), SystemClock()))
    lost, kept = an_envelope(1), an_envelope(2, "b")

    await worker.add(lost, kept)

    assert worker.given_up == [find_shard(a_tally())]
    assert worker.counts.fenced == 3
    assert lost.durable is not None
    assert isinstance(lost.durable.exception(), UnavailableError)
    assert kept.durable is not None
    assert kept.durable.result() is None
    assert {key: one.count for key, one in (await load_tallies(database)).items()} == {"b": 2}


async def test_a_newer_version_reads_states_of_the_one_before_which_leaves_it_the_shard(
    database: Pool,
) -> None:
    newer_kind = make_tally_kind(format_number=2, older={1: partial(TALLY.decode, format_number=1)})
    old, new = OneWorker(database), OneWorker(database, kind=newer_kind)
    await old.add(an_envelope(1), an_envelope(1, "b"))
    await new.add(an_envelope(10))
    old.runner.evict_shards([find_shard(a_tally())])
    lost, kept = an_envelope(100), an_envelope(100, "b")

    await old.add(lost, kept)
    is_final = isinstance(lost.durable.exception(), NeverKeptError) if lost.durable else None
    await new.add(lost._replace(durable=asyncio.get_running_loop().create_future()))

    assert (old.given_up, new.given_up, is_final) == ([find_shard(a_tally())], [], False)
    assert kept.durable is not None
    assert kept.durable.result() is None
    rows = await database.fetch("SELECT key, format, state FROM brain_states ORDER BY key")
    states = [newer_kind.decode(row["state"], format_number=row["format"]) for row in rows]
    assert [(row["key"], row["format"]) for row in rows] == [("a", 2), ("b", 1)]
    assert [one.count for one in states] == [111, 101]
    with pytest.raises(UnreadableActorStateError):
        newer_kind.decode(rows[0]["state"], format_number=0)


async def test_messages_to_others_are_written_with_the_state_and_sent_after(database: Pool) -> None:
    worker = OneWorker(database)

    await worker.add(
        an_envelope(1, messages=((a_tally("b"), Add(amount=4)), (Address("nobody", "x"), Add())))
    )

    [sent] = worker.sent
    assert (sent.address, sent.is_exact, TALLY.decode_message(sent.body)) == (
        a_tally("b"),
        True,
        Add(amount=4),
    )
    assert await database.fetchval("SELECT id FROM brain_outbox") == sent.id
    assert worker.counts.refused == 1


async def test_a_lost_shard_is_forgotten_with_its_alarms(database: Pool) -> None:
    worker = OneWorker(database)
    wakes_at = SystemClock().now() + timedelta(hours=1)
    await worker.add(an_envelope(1, wakes_at=wakes_at), an_envelope(1, "b", wakes_at=wakes_at))

    worker.runner.evict_shards([find_shard(a_tally())])

    assert (len(worker.runner), len(worker.runner.alarms)) == (1, 1)
    timers = await ShardStore(database, Rows(), SystemClock()).read_timers([find_shard(a_tally())], ["tally"])
    assert list(timers) == [(a_tally(), wakes_at)]


async def test_days_of_applied_ids_are_made_and_dropped(tables: Pool) -> None:
    async def days() -> Sequence[str]:
        rows = await tables.fetch(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'brain_applied'::regclass"
        )
        return sorted(row[0].removeprefix("brain_applied_") for row in rows)

    await maintain_days(tables, START.date())
    first = await days()
    await maintain_days(tables, START.date() + timedelta(days=1))
    await maintain_days(tables, START.date() + timedelta(days=1))

    assert first == ["20261112", "20261113", "20261114", "20261115", "20261116", "20261117"]
    assert await days() == ["20261113", "20261114", "20261115", "20261116", "20261117", "20261118"]


def test_an_id_tells_when_it_was_made() -> None:
    now = SystemClock().now()
    made = SystemIds().make()
    clock = ManualClock(now)

    assert make_first_id(now.date()) < made < make_first_id(now.date() + timedelta(days=2))
    assert is_current(made, clock.now())
    assert is_current(made, now - timedelta(hours=23))
    assert not is_current(made, now + timedelta(days=3))
    assert not is_current(made, now - timedelta(days=2))


class Asked(Catalog):
    """Configures tallies with nothing, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        self.count += len(addresses)
        return {one: [Add(amount=0, is_kept=False)] for one in addresses}


@pytest.mark.parametrize("idle", ["a", "b"])
async def test_actors_that_are_configured_again_become_idle_all_the_same(database: Pool, idle: str) -> None:
    clock, began_at = ManualClock(START), START
    worker = OneWorker(database, clock=clock, refresh_seconds=60.0, refresh=Asked())
    await worker.add(*(Envelope(a_tally(key), Add()) for key in ("a", "b")))

    for minute in (1, 2, 3):
        clock.advance(timedelta(minutes=1))
        await worker.runner.configure_next(60.0 * minute)
        await worker.add(*(Envelope(a_tally(key), Add()) for key in {"a", "b"} - {idle}))

    found = worker.runner.list_idle_since(began_at, count_max=9)
    assert [one.address.key for one in found] == [idle]


async def test_actors_that_wait_to_be_configured_again_wait_once(database: Pool) -> None:
    asked, count = Asked(), 3 * CONFIGURED_AT_ONCE
    worker = OneWorker(database, refresh_seconds=60.0, refresh=asked)
    await worker.add(*(Envelope(a_tally(str(number)), Add(is_kept=False)) for number in range(count)))
    for minute in range(1, 10):
        await worker.runner.configure_next(60.0 * minute)

    asked.count = 0
    for _ in range(20):
        await worker.runner.configure_next(60.0 * 9)

    assert asked.count <= count
