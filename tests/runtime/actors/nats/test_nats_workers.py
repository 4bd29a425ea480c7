"""Several workers share the actors: shards move, messages come twice, and everything is applied once."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import count

import pytest

from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.runtime.actors.actor import SHARDS, Address, find_shard
from adloom.runtime.actors.nats import balance, pinned
from adloom.runtime.actors.nats.groups import LEFT_MAX, open_group
from adloom.runtime.actors.nats.messages import (
    MessageResult,
    SentMessage,
    decode_results,
    encode_group,
    encode_message,
)
from adloom.runtime.actors.nats.pinned import ID_HEADER, Delivered
from adloom.runtime.actors.nats.ports import Received
from adloom.runtime.actors.nats.sender import NatsSender, OutboxSweep
from adloom.runtime.actors.nats.store import SEND, Outbox, OutboxMessage, ShardCommit, ShardStore
from adloom.runtime.postgres import Pool
from tests.support.actors import START, TALLY, Add, Catalog, Count, Nap, Woken, a_tally, make_tally_kind
from tests.support.eventually import becomes, eventually, measure_fastest
from tests.support.nats import Rows, SharedWorker, load_tallies, tally_of
from tests.support.nats_server import connected, delete_stream


async def _ask(worker: SharedWorker, key: str, amount: int = 0) -> int:
    answer: Count = await worker.sender.ask(a_tally(key), Add(amount=amount), seconds_max=10)
    return answer.count


async def test_a_second_worker_gets_its_share_and_hands_it_over_when_it_stops(
    nats_url: str, tables: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shards that were not handed over would be missed after so long.
    monkeypatch.setattr(pinned, "PIN_SECONDS", 20)
    monkeypatch.setattr(balance, "SILENT_SECONDS_MAX", 20.0)
    first = SharedWorker(nats_url, tables, name="one")
    names, seconds = count(2), list[float]()

    async def hand_over() -> None:
        second = SharedWorker(nats_url, tables, name=f"{next(names)}")
        async with second.running(shards_min=45):
            await eventually(lambda: first.shards + second.shards == SHARDS, seconds=30)
            assert min(first.shards, second.shards) >= 45
            before = [await _ask(first, f"k{number}", number) for number in range(40)]
            assert before == [number * (len(seconds) + 1) for number in range(40)]

        async def ask_again() -> None:
            assert [await _ask(first, f"k{number}") for number in range(40)] == before

        seconds.append(await measure_fastest(ask_again, seconds=10.0, tries=1))
        assert first.host.counts.fenced == second.host.counts.fenced == 0

    async with first.running():
        while len(seconds) < 2 and min(seconds, default=10.0) >= 10.0:  # The machine may be busy.
            await hand_over()

    assert min(seconds) < 10.0


async def test_a_message_that_comes_while_a_shard_is_taken_over_is_kept(
    nats_url: str, tables: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_timers = ShardStore.read_timers

    async def read_slowly(
        store: ShardStore, shards: Sequence[int], kinds: Sequence[str]
    ) -> Sequence[tuple[Address, datetime]]:
        await asyncio.sleep(0.3)
        return await read_timers(store, shards, kinds)

    monkeypatch.setattr(ShardStore, "read_timers", read_slowly)
    now = SystemClock().now()
    worker = SharedWorker(nats_url, tables)

    async with worker.running():
        for number in range(SHARDS):
            worker.sender.tell(tally_of(number), Nap(now))

        async def are_all_woken() -> bool:
            return sum(bool(one.woken_at) for one in (await load_tallies(tables)).values()) == SHARDS

        await becomes(are_all_woken, seconds=30)


async def test_messages_twice_and_in_disorder_are_applied_once(nats_url: str, tables: Pool) -> None:
    chance, ids = random.Random(8), SystemIds()  # noqa: S311 - seeded, so that runs repeat
    expected: Counter[str] = Counter()
    groups: list[bytes] = []
    for number in range(300):
        address, amount = a_tally(f"k{number % 30}"), chance.randrange(1_000)
        expected[address.key] += amount
        body = TALLY.encode_message(Add(amount=amount, is_kept=False, records=(number,)))
        message = SentMessage(ids.make(), *address, body, is_exact=True)
        plain = SentMessage(ids.make(), *address, TALLY.encode_message(Add(amount=0, is_kept=False)))
        # Half of those that may be lost are.
        both = [message, plain] if chance.random() < 0.5 else [message]
        groups += [encode_group(both), encode_group(both, attempt=2)]
        shard = find_shard(address)
        groups[-2:] = [bytes([shard]) + group for group in groups[-2:]]
    chance.shuffle(groups)

    async with SharedWorker(nats_url, tables).running() as worker, connected(nats_url) as connection:
        for number, group in enumerate(groups):
            await connection.publish(f"brain.{group[0]}", group[1:], headers={ID_HEADER: str(number)})
        async with asyncio.timeout(60):
            while (  # noqa: ASYNC110 - the database sends no notice of it
                {key: one.count for key, one in (await load_tallies(tables)).items()} != dict(expected)
                or worker.host.waiting
            ):
                await asyncio.sleep(0.05)

    assert await tables.fetchval("SELECT count(*) FROM test_rows") == 300
    assert await tables.fetchval("SELECT count(*) FROM brain_applied") == 300


async def test_a_repeated_ask_gets_the_first_answer(nats_url: str, tables: Pool) -> None:
    body = TALLY.encode_message(Add(amount=5))
    message = SentMessage(SystemIds().make(), *a_tally(), body, is_exact=True, is_ask=True)
    heard: asyncio.Queue[MessageResult] = asyncio.Queue()

    async def hear(received: Received) -> None:
        for result in decode_results(received.data):
            heard.put_nowait(result)

    async with SharedWorker(nats_url, tables).running() as worker, connected(nats_url) as connection:
        await connection.subscribe("_INBOX.test", hear)
        results: list[MessageResult] = []
        for attempt in (1, 2):
            group = encode_group([message], results_to="_INBOX.test", attempt=attempt)
            await connection.publish(f"brain.{message.shard}", group)
            results.append(await asyncio.wait_for(heard.get(), 60))
            await _ask(worker, "a", 1)

        assert results == [MessageResult(message.id, is_kept=True, reply=TALLY.encode_message(Count(5)))] * 2
        assert await _ask(worker, "a") == 7


async def test_what_a_dead_worker_has_not_sent_is_sent_by_another(nats_url: str, tables: Pool) -> None:
    body = TALLY.encode_message(Add(amount=7))
    message = SentMessage(SystemIds().make(), *a_tally("to"), body, is_exact=True)
    store = ShardStore(tables, Rows(), SystemClock())
    await store.commit_batch(
        ShardCommit(writes=[], records=[], applied=[], outbox=[OutboxMessage(message.shard, message)])
    )

    async with SharedWorker(nats_url, tables).running() as worker:

        async def is_applied() -> bool:
            return await _ask(worker, "to") == 7

        async def is_forgotten() -> bool:
            return not await Outbox(tables).list_waiting(range(SHARDS), before=SystemClock().now())

        await becomes(is_applied, seconds=30)
        await becomes(is_forgotten, seconds=30)


async def test_a_lost_stream_loses_nothing_that_a_sender_waits_for(nats_url: str, tables: Pool) -> None:
    async with SharedWorker(nats_url, tables).running() as worker:
        for part in range(5):
            durable = [worker.sender.send_durably(a_tally(f"k{n}"), Add(amount=1)) for n in range(100)]
            if part in {1, 3}:
                await delete_stream(nats_url)
            await asyncio.gather(*durable)

    assert {one.count for one in (await load_tallies(tables)).values()} == {5}


async def test_a_new_actor_hears_what_changed_while_it_was_stored(nats_url: str, tables: Pool) -> None:
    catalog = Catalog()
    catalog.introductions[a_tally()] = [Add(amount=100, is_kept=False)]
    async with SharedWorker(nats_url, tables, catalog=catalog).running() as worker:
        assert await _ask(worker, "a", 1) == 101

        # Its first messages come once more, now that everybody can find it.
        async def is_configured_again() -> bool:
            return await _ask(worker, "a") == 201

        await becomes(is_configured_again, seconds=30)


class NeverAnswers:
    payload_max = 2**20


async def test_what_another_worker_has_left_is_sent_while_other_messages_wait(tables: Pool) -> None:
    sender = NatsSender(NeverAnswers(), {"tally": TALLY}, SystemIds())  # pyright: ignore[reportArgumentType] - not used
    sweep = OutboxSweep(tables, sender, SystemClock())
    sweep.shards = range(SHARDS)
    sender.tell(a_tally(), Add())
    left = SentMessage(SystemIds().make(), *a_tally("b"), TALLY.encode_message(Add()), is_exact=True)
    await tables.execute(SEND, [left.id], [left.shard], [encode_message(left)], START)

    for _ in range(2):
        await sweep.sweep()
        assert left.id in sender.list_waiting()
        assert sender.waiting == 2


async def test_what_an_older_version_cannot_read_is_left_to_a_newer_one(nats_url: str, tables: Pool) -> None:
    older = SharedWorker(nats_url, tables, name="one", kinds=(make_tally_kind(messages=Woken),))
    newer = SharedWorker(nats_url, tables, name="two")

    async with older.running(), newer.running(shards_min=45):
        await eventually(lambda: older.shards + newer.shards == SHARDS, seconds=30)
        keys = [tally_of(shard).key for shard in older.host.pulls.list_held()[:3]]
        counts = [await _ask(newer, key, 7) for key in keys]

    assert counts == [7, 7, 7]


@pytest.mark.parametrize(
    ("times", "has_others", "is_left"), [(1, True, True), (LEFT_MAX + 1, True, False), (1, False, False)]
)
async def test_what_no_version_can_read_fails_after_a_while(
    times: int, *, has_others: bool, is_left: bool
) -> None:
    ids = SystemIds()
    known = SentMessage(ids.make(), *a_tally(), TALLY.encode_message(Add()), is_exact=True)
    unknown = SentMessage(ids.make(), "unknown", "a", b"", is_exact=True)

    for data in (b"\xc1", encode_group([known, unknown])):
        delivered = Delivered(0, data, "", "", times, 0)
        opened = open_group(delivered, {"tally": TALLY}, SystemClock().now(), has_others=has_others)

        assert opened.is_left == is_left
        is_read = not is_left and data != b"\xc1"
        assert [one.id for one in opened.envelopes] == [known.id] * is_read
        assert [one.id for one in opened.unreadable if one.is_final] == [unknown.id] * is_read
