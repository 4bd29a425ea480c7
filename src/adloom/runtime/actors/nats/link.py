"""What a worker has of NATS: one connection, a sender, and a host if it runs actors."""

import asyncio
from collections.abc import Sequence

from adloom import VERSION
from adloom.core.clock import Clock
from adloom.core.ids import IdSource
from adloom.core.random import Chance
from adloom.runtime.actors.actor import AnyKind
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.host import NatsActorHost
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.postgres import Pool
from adloom.runtime.random import make_system_chance
from adloom.runtime.telemetry.heartbeat import ShardReading


class NatsLink:
    """Connects a worker; `kinds` are all that get messages this way, on whichever worker they run."""

    def __init__(
        self, url: str, kinds: Sequence[AnyKind], ids: IdSource, *, name: str, replicas: int = 1
    ) -> None:
        self._connection = NatsConnection(url, name=name)
        self._name = name
        self._replicas = replicas
        self._ids = ids
        self.sender = NatsSender(self._connection, {kind.name: kind for kind in kinds}, ids)
        self.host: NatsActorHost | None = None

    def add_host(
        self, families: Sequence[ActorFamily], pool: Pool, clock: Clock, *, chance: Chance | None = None
    ) -> NatsActorHost:
        """Have this worker run actors too."""
        self.host = NatsActorHost(
            families,
            self._connection,
            self.sender,
            pool,
            name=self._name,
            version=VERSION,
            clock=clock,
            chance=chance or make_system_chance(),
            ids=self._ids,
            replicas=self._replicas,
        )
        return self.host

    def read_shards(self) -> ShardReading | None:
        """Return what this worker has of the actors; None if it runs none."""
        if self.host is None:
            return None
        return ShardReading(
            held=tuple(self.host.pulls.list_held()),
            lag={shard: count for shard, count in self.host.pulls.list_lags().items() if count},
            fenced_writes=self.host.counts.fenced,
            moves=self.host.pulls.moves,
            is_connected=self._connection.is_connected,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Connect and run until `stop` is set; the sender outlives the host, which still sends."""
        over = asyncio.Event()
        await self._connection.open(stop)
        if stop.is_set():
            return
        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self.sender.run(over))
                if self.host is None:
                    await stop.wait()
                else:
                    await self.host.run(stop)
                over.set()
                await sending
        finally:
            await self._connection.close()
