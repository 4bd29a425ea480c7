"""More messages than a worker may hold: the rest waits in JetStream, and nothing is lost."""

import asyncio
import json

import pytest

from adloom.core.ids import SystemIds
from adloom.runtime.actors.nats.messages import SentMessage, encode_group
from adloom.runtime.actors.nats.pinned import ID_HEADER, ensure_stream, name_subject
from adloom.runtime.actors.nats.shard_pulls import PULL_MAX, WAITING_MAX
from adloom.runtime.actors.nats.store import ShardCommit, ShardStore
from adloom.runtime.postgres import Pool
from tests.support.actors import TALLY, Add
from tests.support.eventually import becomes, eventually
from tests.support.nats import SharedWorker, load_tallies, tally_of
from tests.support.nats_server import connected

SHARDS_USED = 10
OF_A_SHARD = 350  # More in all than a worker takes, with what its open pulls bring.
MESSAGES = SHARDS_USED * OF_A_SHARD
HELD_MAX = WAITING_MAX + SHARDS_USED * PULL_MAX


async def test_a_worker_that_cannot_write_leaves_messages_in_the_stream(
    nats_url: str, tables: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write, commit, ids = asyncio.Event(), ShardStore.commit_batch, SystemIds()

    async def wait_and_commit(store: ShardStore, batch: ShardCommit) -> object:
        await may_write.wait()
        return await commit(store, batch)

    monkeypatch.setattr(ShardStore, "commit_batch", wait_and_commit)
    worker, addresses = SharedWorker(nats_url, tables), [tally_of(shard) for shard in range(SHARDS_USED)]
    async with connected(nats_url) as connection:
        await ensure_stream(connection)
        for number in range(MESSAGES):
            address = addresses[number % SHARDS_USED]
            body = TALLY.encode_message(Add(amount=1, is_kept=False, records=(number,)))
            group = encode_group([SentMessage(ids.make(), *address, body, is_exact=True)])
            subject = name_subject(number % SHARDS_USED)
            await connection.publish(subject, group, headers={ID_HEADER: str(number)})

        async def are_all_kept() -> bool:
            found = json.loads(await connection.request("$JS.API.STREAM.INFO.BRAIN", b""))
            return found["state"]["messages"] >= MESSAGES

        await becomes(are_all_kept, seconds=30)

    async with worker.running(shards_min=0):
        most = 0

        def is_full() -> bool:
            nonlocal most
            most = max(most, worker.host.waiting)
            return most >= WAITING_MAX

        async def are_all_applied() -> bool:
            is_full()
            counts = {key: one.count for key, one in (await load_tallies(tables)).items()}
            return counts == {address.key: OF_A_SHARD for address in addresses}

        await eventually(is_full, seconds=30)
        assert worker.host.waiting < MESSAGES
        may_write.set()
        await becomes(are_all_applied, seconds=60)

    assert WAITING_MAX <= most <= HELD_MAX < MESSAGES
    assert await tables.fetchval("SELECT count(*) FROM test_rows") == MESSAGES
