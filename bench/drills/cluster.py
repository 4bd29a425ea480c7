"""PostgreSQL, Valkey, NATS and some workers with nothing but actors, for a drill."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.kinds import make_kinds
from adloom.core.clock import SystemClock
from adloom.core.ids import CampaignId, SystemIds
from adloom.runtime import migrate
from adloom.runtime.actors.actor import SHARDS, Address, find_shard
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.embedded.nats import EmbeddedNats
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import Program, send, start
from adloom.runtime.telemetry.heartbeat import HeartbeatReader, ShardReading
from adloom.runtime.valkey import Valkey, open_valkey
from bench.drills.stand_ins import Standby, copy_standby, make_servers, make_synchronous, name_both
from bench.servers import PASSWORD, filter_environment, open_folder

WORKERS: Final = 3
LOOPBACK: Final = "127.0.0.1"
SERVERS: Final = ("DATABASE_URL", "REDIS_URL", "ADLOOM_NATS_URL")
OWN_SECONDS_MAX: Final = 60.0
ROOT: Final = Path(__file__).parents[2]
WESTERN_HOURS: Final = 9  # Zones are at most 14 hours ahead of UTC.
STOP_SECONDS_MAX: Final = 10.0
BUDGET_PAISA: Final = 100_000_000
INSERT_CAMPAIGNS: Final = """
    INSERT INTO campaigns (public_id, name, status, budget_daily_paisa, bid_type, bid_amount_micros, pacing_strategy,
                           timezone)
    SELECT public_id, 'drill', 'active', $2, 'cpm', 1000000, 'Accelerated', $3 FROM unnest($1::uuid[]) AS public_id
"""
INSERTED_AT_ONCE: Final = 1_000


# Takes a name, seconds by which the clock is ahead, what the command begins with, where the servers are, and a module.
StartWorker = Callable[[str, float, Sequence[str], str, str], Awaitable[Process]]


class ServerProgram(Protocol):
    """A server's program, and when it is ready."""

    @property
    def program(self) -> Program: ...

    async def prepare(self) -> None: ...

    async def wait_until_ready(self) -> None: ...


class Server:
    """A server that can be killed and started again."""

    def __init__(self, server: ServerProgram, log: Path) -> None:
        self._server = server
        self._log = log
        self.process: Process | None = None

    async def start(self) -> None:
        await self._server.prepare()
        with self._log.open("ab") as output:
            self.process = await start(self._server.program, output=output)
        await self._server.wait_until_ready()

    async def end(self, number: signal.Signals) -> None:
        if self.process is not None:
            send(self.process, number)
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self.process.wait()


class Cluster:
    """What a drill works on."""

    def __init__(  # noqa: PLR0913 - all that runs
        self,
        *,
        pool: Pool,
        valkey: Valkey,
        sender: NatsSender,
        nats: Mapping[str, Server],
        postgres: Server,
        nats_url: str,
        ports: Sequence[int],
        start_worker: StartWorker,
        standby: Standby | None = None,
        patience: float = 1.0,
    ) -> None:
        self.patience = patience  # On a busy machine, so many times as long is soon enough.
        self.pool = pool
        self.valkey = valkey
        self.sender = sender
        self.nats = nats  # By name; one, or three that share all messages.
        self.postgres = postgres
        self.nats_url = nats_url
        self.ports = ports  # Of PostgreSQL, Valkey and NATS.
        self.standby = standby
        self._start_worker = start_worker
        self.workers: dict[str, Process] = {}
        self.campaigns: list[Address] = []
        self.owned_seconds = 0.0  # From the start of the workers until they had all shards.

    async def add_worker(
        self,
        name: str,
        *,
        ahead_seconds: float = 0,
        prefix: Sequence[str] = (),
        host: str = LOOPBACK,
        module: str = "adloom.app.worker",
    ) -> None:
        """Start a worker, whose clock may be ahead, or which another command starts and finds servers elsewhere."""
        self.workers[name] = await self._start_worker(name, ahead_seconds, prefix, host, module)

    async def end_worker(self, name: str) -> None:
        await _end(self.workers.pop(name))

    def signal(self, name: str, number: signal.Signals) -> None:
        send(self.workers[name], number)

    async def read_shards(self) -> dict[str, ShardReading]:
        found = await HeartbeatReader(self.valkey).list_processes(now=SystemClock().now())
        return {one.process: one.reading.shards for one in found if one.reading.shards is not None}

    async def wait_until_known(self, name: str) -> None:
        """Wait for the first heartbeat of a worker: a busy machine takes long to start an interpreter."""
        async with asyncio.timeout(OWN_SECONDS_MAX):
            while name not in await self.read_shards():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.1)

    async def wait_until_owned(self, workers: int) -> float:
        """Wait until so many workers have all shards between them, and about the same number; return the seconds."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        async with asyncio.timeout(OWN_SECONDS_MAX * self.patience):
            while True:
                held = [len(one.held) for one in (await self.read_shards()).values()]
                if sum(held) == SHARDS and sum(1 for one in held if one) == workers:
                    return loop.time() - began_at
                await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def run_cluster(
    *,
    campaigns: int = 300,
    has_standby: bool = False,
    is_nats_replicated: bool = False,
    roles: str = "entity",
    patience: float = 1.0,
) -> AsyncGenerator[Cluster]:
    """Run servers and workers, with a campaign on every shard; all of it is removed at the end."""
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(open_folder())
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password=PASSWORD
        )
        valkey = EmbeddedValkey(folder / "valkey", listening=Listening(port=find_port()), password=PASSWORD)
        nats = _make_nats(folder, is_replicated=is_nats_replicated)
        nats_url = ",".join(one.url for one in nats.values())
        programs = {"postgres": postgres, "valkey": valkey, **nats}
        servers = {name: Server(one, folder / f"{name}.log") for name, one in programs.items()}
        async with asyncio.TaskGroup() as group:  # Servers of NATS are ready when they have found each other.
            for server in servers.values():
                stack.push_async_callback(server.end, signal.SIGTERM)
                group.create_task(server.start())
        await migrate.upgrade(postgres.url)
        standby = await _start_standby(stack, postgres, folder) if has_standby else None
        database_url = postgres.url if standby is None else name_both(postgres, standby)
        environment = {
            **filter_environment(os.environ),
            "DATABASE_URL": database_url,
            "REDIS_URL": valkey.url,
            "ADLOOM_NATS_URL": nats_url,
            "ADLOOM_NATS_REPLICAS": str(len(nats)),
            "ADLOOM_WORKER_ROLES": roles,
            "WORKER_PORT": "0",
        }

        connection = NatsConnection(nats_url, name="drill")
        sender = NatsSender(connection, {kind.name: kind for kind in make_kinds()}, SystemIds())
        cluster = Cluster(
            pool=await stack.enter_async_context(open_pool(database_url, size_max=4)),
            valkey=await stack.enter_async_context(open_valkey(valkey.url)),
            sender=sender,
            nats={name: servers[name] for name in nats},
            postgres=servers["postgres"],
            nats_url=nats_url,
            ports=[one.port or 0 for one in programs.values()],
            start_worker=_make_starter(stack, folder, environment),
            standby=standby,
            patience=patience,
        )
        await _insert_campaigns(cluster, campaigns)
        await connection.open(asyncio.Event())
        stack.push_async_callback(connection.close)
        _start_sending(stack, sender)
        for number in range(1, WORKERS + 1):
            await cluster.add_worker(f"worker-{number}")
        cluster.owned_seconds = await cluster.wait_until_owned(WORKERS)
        yield cluster


def _make_nats(folder: Path, *, is_replicated: bool) -> dict[str, EmbeddedNats]:
    if is_replicated:
        return {one.name: one for one in make_servers(folder, password=PASSWORD)}
    return {"nats": EmbeddedNats(folder / "nats", port=find_port(), password=PASSWORD)}


def _make_starter(stack: contextlib.AsyncExitStack, folder: Path, environment: dict[str, str]) -> StartWorker:
    async def start_worker(
        name: str, ahead_seconds: float, prefix: Sequence[str], host: str, module: str
    ) -> Process:
        module = "bench.drills.odd_clock_worker" if ahead_seconds else module
        program = Program(
            name=name,
            arguments=(*prefix, sys.executable, "-m", module),
            environment={
                **environment,
                **{one: environment[one].replace(LOOPBACK, host) for one in SERVERS},
                "ADLOOM_PROCESS": name,
                "DRILL_CLOCK_SECONDS": str(ahead_seconds),
                "PYTHONPATH": str(ROOT),
            },
        )
        with (folder / f"{name}.log").open("ab") as output:
            process = await start(program, output=output)
        stack.push_async_callback(_end, process)
        return process

    return start_worker


async def _start_standby(
    stack: contextlib.AsyncExitStack, primary: EmbeddedPostgres, folder: Path
) -> Standby:
    standby = await copy_standby(primary, folder / "standby", password=PASSWORD)
    server = Server(standby, folder / "standby.log")
    await server.start()
    stack.push_async_callback(server.end, signal.SIGTERM)
    await make_synchronous(primary)
    return standby


def _start_sending(stack: contextlib.AsyncExitStack, sender: NatsSender) -> None:
    stop = asyncio.Event()
    sending = asyncio.get_running_loop().create_task(sender.run(stop))
    stack.push_async_callback(asyncio.wait, [sending])
    stack.callback(stop.set)


async def _end(process: Process) -> None:
    if process.returncode is None:
        send(process, signal.SIGCONT)
        send(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            send(process, signal.SIGKILL)
            await process.wait()


def _find_late_zone(hour: int) -> str:
    """Find a time zone in which it is 23 o'clock: a worker whose clock is an hour ahead is in tomorrow there."""
    east = 23 - hour if hour >= WESTERN_HOURS else -1 - hour
    # These names count to the west.
    return f"Etc/GMT{-east:+d}" if east else "Etc/GMT"


async def _insert_campaigns(cluster: Cluster, count: int) -> None:
    """Insert campaigns, at least one of every shard."""
    ids, unseen, zone = SystemIds(), set(range(SHARDS)), _find_late_zone(SystemClock().now().hour)
    inserted: list[CampaignId] = []
    while len(inserted) < count or unseen:
        campaign_id = CampaignId(ids.make())
        address = make_campaign_address(campaign_id, None)
        if len(inserted) < count - len(unseen) or find_shard(address) in unseen:
            unseen.discard(find_shard(address))
            inserted.append(campaign_id)
            cluster.campaigns.append(address)
    for first in range(0, len(inserted), INSERTED_AT_ONCE):
        some = inserted[first : first + INSERTED_AT_ONCE]
        await cluster.pool.execute(INSERT_CAMPAIGNS, some, BUDGET_PAISA, zone)
