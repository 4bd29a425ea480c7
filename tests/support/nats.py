"""A real NATS server, and workers that share the tallies of a database."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import SystemIds
from adloom.runtime.actors.actor import SHARDS, Address, AnyKind, FirstMessages, find_shard
from adloom.runtime.actors.nats.host import NatsActorHost
from adloom.runtime.actors.nats.link import NatsLink
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.actors.nats.store import ShardStore
from adloom.runtime.actors.state_store import RecordWriter
from adloom.runtime.postgres import Connection, Pool
from tests.support.actors import TALLY, Catalog, Listeners, Row, Tally
from tests.support.eventually import eventually


class Rows:
    """Writes rows into a table in which each may be once."""

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        rows = [(row.key, row.number) for row in records if isinstance(row, Row)]
        await connection.executemany("INSERT INTO test_rows (key, number) VALUES ($1, $2)", rows)


class SharedWorker:
    """A worker that runs some shards, and sends to all."""

    def __init__(  # noqa: PLR0913 - what tests change
        self,
        url: str,
        pool: Pool,
        *,
        name: str = "one",
        kinds: Sequence[AnyKind] = (TALLY,),
        catalog: FirstMessages | None = None,
        records: RecordWriter | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.pool = pool
        self.listeners = Listeners()
        self.link = NatsLink(url, kinds, SystemIds(), name=name)
        clock = clock or SystemClock()
        family = ActorFamily(
            kinds=kinds,
            store=ShardStore(pool, records or Rows(), clock),
            introduction=catalog or Catalog(),
            audience=self.listeners,
        )
        self.host: NatsActorHost = self.link.add_host([family], pool, clock)
        self.sender: NatsSender = self.link.sender

    @property
    def shards(self) -> int:
        return len(self.host.pulls.list_held())

    @asynccontextmanager
    async def running(self, *, shards_min: int = SHARDS) -> AsyncGenerator["SharedWorker"]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.link.run(stop))
            try:
                await eventually(lambda: self.shards >= shards_min, seconds=30)
                yield self
            finally:
                stop.set()


async def load_tallies(pool: Pool) -> dict[str, Tally]:
    rows = await pool.fetch("SELECT key, state, format FROM brain_states WHERE kind = 'tally'")
    return {row["key"]: TALLY.decode(row["state"], format_number=row["format"]) for row in rows}


def tally_of(shard: int) -> Address:
    """The first tally of a shard."""
    return next(
        one for number in range(100_000) if find_shard(one := Address("tally", f"k{number}")) == shard
    )
