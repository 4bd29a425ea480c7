"""Drills 1, 2, 4 to 7 and 9: workers and servers that die, freeze, join and restart."""

import asyncio
import signal
import time
from typing import Final

from adloom.runtime.actors.nats.connection import NatsConnection
from bench.drills.cluster import Cluster
from bench.drills.load import ask_every_shard
from bench.drills.result import Figures, require
from bench.drills.stand_ins import find_leader

CALM_SECONDS: Final = 2.0
ANSWER_SECONDS_MAX: Final = 5.0
ROLLING_SECONDS_MAX: Final = 2.0
SERVER_SECONDS_MAX: Final = 15.0
FROZEN_SECONDS: Final = 20.0
SHARE_SECONDS: Final = 15.0
SHARE: Final = 25  # Of four workers.
SHARE_OFF_MAX: Final = 2  # Ten percent.


async def kill_worker(cluster: Cluster) -> Figures:
    """1. kill -9 of a worker: every shard answers again within 5 s."""
    cluster.signal("worker-1", signal.SIGKILL)
    seconds = max(await ask_every_shard(cluster))
    require_answers(cluster, seconds, seconds_max=ANSWER_SECONDS_MAX)
    return {"last shard answered, s": seconds}


async def freeze_worker(cluster: Cluster) -> Figures:
    """2. SIGSTOP for 20 s, SIGCONT: others answer within 5 s, and late writes are refused."""
    cluster.signal("worker-1", signal.SIGSTOP)
    began_at = time.perf_counter()
    seconds = max(await ask_every_shard(cluster))
    await asyncio.sleep(max(0.0, FROZEN_SECONDS - (time.perf_counter() - began_at)))
    cluster.signal("worker-1", signal.SIGCONT)
    await asyncio.sleep(CALM_SECONDS * 2)
    fenced = {name: one.fenced_writes for name, one in (await cluster.read_shards()).items()}
    require_answers(cluster, seconds, seconds_max=ANSWER_SECONDS_MAX)
    require(is_so=sum(fenced.values()) > 0, what="no late write was refused")
    return {"last shard answered, s": seconds, "writes refused": sum(fenced.values())}


async def add_worker(cluster: Cluster) -> Figures:
    """4. A new worker has its share within 10 % after 15 s; no question takes more than 2 s."""
    await cluster.add_worker("worker-4")
    await cluster.wait_until_known("worker-4")
    began_at = time.perf_counter()
    slowest = 0.0
    while time.perf_counter() - began_at < SHARE_SECONDS:
        slowest = max(slowest, *await ask_every_shard(cluster))
        await asyncio.sleep(0.2)
    shares = {name: len(one.held) for name, one in (await cluster.read_shards()).items()}
    require(
        is_so=all(abs(share - SHARE) <= SHARE_OFF_MAX for share in shares.values()),
        what=f"the shares are {shares}",
    )
    require(is_so=slowest <= ROLLING_SECONDS_MAX, what=f"a question took {slowest:.1f} s")
    return {"slowest answer, s": slowest, **{f"shards of {name}": share for name, share in shares.items()}}


async def restart_workers(cluster: Cluster) -> Figures:
    """5. Rolling restart of all workers: no question takes more than 2 s, none fails."""
    slowest = 0.0
    for name in list(cluster.workers):
        cluster.signal(name, signal.SIGTERM)
        leaving = asyncio.get_running_loop().create_task(cluster.workers[name].wait())
        while not leaving.done():
            slowest = max(slowest, *await ask_every_shard(cluster))
            await asyncio.sleep(0.1)
        await cluster.add_worker(name)
        for _ in range(20):
            slowest = max(slowest, *await ask_every_shard(cluster))
            await asyncio.sleep(0.2)
    require(is_so=slowest <= ROLLING_SECONDS_MAX, what=f"a question took {slowest:.1f} s")
    return {"slowest answer, s": slowest}


async def kill_nats(cluster: Cluster) -> Figures:
    """6. kill -9 of the only NATS server, and restart: questions are answered again within 15 s, nothing is lost."""
    [server] = cluster.nats.values()
    await server.end(signal.SIGKILL)
    began_at = time.perf_counter()
    await asyncio.sleep(1.0)
    await server.start()
    await ask_every_shard(cluster)
    seconds = time.perf_counter() - began_at
    require_answers(cluster, seconds, seconds_max=SERVER_SECONDS_MAX)
    return {"last shard answered, s": seconds}


async def kill_nats_leader(cluster: Cluster) -> Figures:
    """6. kill -9 of the leader of three NATS servers: questions are answered again within 15 s, nothing is lost."""
    connection = NatsConnection(cluster.nats_url, name="drill-leader")
    await connection.open(asyncio.Event())
    leader = await find_leader(connection)
    await cluster.nats[leader].end(signal.SIGKILL)
    seconds = max(await ask_every_shard(cluster))
    await asyncio.sleep(CALM_SECONDS)
    await cluster.nats[leader].start()
    back = max(await ask_every_shard(cluster))
    await connection.close()
    require_answers(cluster, max(seconds, back), seconds_max=SERVER_SECONDS_MAX)
    return {"last shard answered, s": seconds, "when the server was back, s": back}


async def delete_stream(cluster: Cluster) -> Figures:
    """7. The stream is deleted, three times: what was in it is sent again, and the states are the same."""
    connection = NatsConnection(cluster.nats_url, name="drill-delete")
    await connection.open(asyncio.Event())
    slowest = 0.0
    for _ in range(3):
        await connection.request("$JS.API.STREAM.DELETE.BRAIN", b"")
        slowest = max(slowest, *await ask_every_shard(cluster))
        await asyncio.sleep(1.0)
    await connection.close()
    require_answers(cluster, slowest, seconds_max=SERVER_SECONDS_MAX)
    return {"last shard answered, s": slowest}


async def restart_postgres(cluster: Cluster) -> Figures:
    """9. PostgreSQL is killed and its connections are cut under load: nothing is charged twice."""
    for _ in range(5):
        await cluster.pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await asyncio.sleep(0.3)
    began_at = time.perf_counter()
    await cluster.postgres.end(signal.SIGQUIT)
    await cluster.postgres.start()
    await ask_every_shard(cluster)
    return {"last shard answered, s": time.perf_counter() - began_at}


async def promote_standby(cluster: Cluster) -> Figures:
    """PostgreSQL. The primary is killed and its standby promoted: questions are answered again, nothing is lost."""
    assert cluster.standby is not None
    began_at = time.perf_counter()
    await cluster.postgres.end(signal.SIGQUIT)
    await cluster.standby.promote()
    promoted = time.perf_counter() - began_at
    await ask_every_shard(cluster)
    seconds = time.perf_counter() - began_at
    require_answers(cluster, seconds, seconds_max=SERVER_SECONDS_MAX)
    return {"promoted, s": promoted, "last shard answered, s": seconds}


def require_answers(cluster: Cluster, seconds: float, *, seconds_max: float) -> None:
    is_soon = seconds <= seconds_max * cluster.patience
    require(is_so=is_soon, what=f"the last shard answered after {seconds:.1f} s")
