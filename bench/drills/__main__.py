"""`just drills`: runs drills one after another, prints the figures of each, and exits with 1 if one of them fails."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Final

from rich.console import Console

from adloom.runtime.actors.nats.connection import NatsConnection
from bench.drills.cluster import Cluster, run_cluster
from bench.drills.disorder import disorder_messages, set_clock_wrong
from bench.drills.load import Books, Load, ask_every_shard
from bench.drills.rates import measure_rates
from bench.drills.result import DrillError, Figures, require

CALM_SECONDS: Final = 2.0
ANSWER_SECONDS_MAX: Final = 5.0
ROLLING_SECONDS_MAX: Final = 2.0
SERVER_SECONDS_MAX: Final = 15.0
FROZEN_SECONDS: Final = 20.0
SHARE_SECONDS: Final = 15.0
SHARE: Final = 25  # Of four workers.
SHARE_OFF_MAX: Final = 10


async def kill_worker(cluster: Cluster) -> Figures:
    """1. kill -9 of a worker: every shard answers again within 5 s."""
    cluster.signal("worker-1", signal.SIGKILL)
    seconds = max(await ask_every_shard(cluster))
    require(is_so=seconds <= ANSWER_SECONDS_MAX, what=f"the last shard answered after {seconds:.1f} s")
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
    require(is_so=seconds <= ANSWER_SECONDS_MAX, what=f"the last shard answered after {seconds:.1f} s")
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
    await cluster.nats.end(signal.SIGKILL)
    began_at = time.perf_counter()
    await asyncio.sleep(1.0)
    await cluster.nats.start()
    await ask_every_shard(cluster)
    seconds = time.perf_counter() - began_at
    require(is_so=seconds <= SERVER_SECONDS_MAX, what=f"the last shard answered after {seconds:.1f} s")
    return {"last shard answered, s": seconds}


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
    require(is_so=slowest <= SERVER_SECONDS_MAX, what=f"the last shard answered after {slowest:.1f} s")
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
    require(is_so=seconds <= SERVER_SECONDS_MAX, what=f"the last shard answered after {seconds:.1f} s")
    return {"promoted, s": promoted, "last shard answered, s": seconds}


DRILLS: Final[dict[str, Callable[[Cluster], Awaitable[Figures]]]] = {
    "1": kill_worker,
    "2": freeze_worker,
    "4": add_worker,
    "5": restart_workers,
    "6": kill_nats,
    "7": delete_stream,
    "8": disorder_messages,
    "9": restart_postgres,
    "11": set_clock_wrong,
    "14": measure_rates,
    "postgres": promote_standby,
}
UNLOADED: Final = frozenset({"14"})  # It brings its own load.
WITH_STANDBY: Final = frozenset({"postgres"})


async def run_drill(
    drill: Callable[[Cluster], Awaitable[Figures]], *, is_loaded: bool, has_standby: bool = False
) -> tuple[Figures, Books]:
    """Run one drill on a cluster of its own, under load, and check the books at its end."""
    async with run_cluster(has_standby=has_standby) as cluster:
        load = Load(cluster)
        if not is_loaded:
            return await drill(cluster), await load.check()
        charging = asyncio.get_running_loop().create_task(load.run())
        await asyncio.sleep(CALM_SECONDS)
        figures = await drill(cluster)
        await asyncio.sleep(CALM_SECONDS)
        load.stop()
        await charging
        return {**figures, "sent again": load.failures}, await load.check()


def main() -> None:
    console = Console(soft_wrap=True)
    is_lost = False
    for name in sys.argv[1:] or DRILLS:
        drill = DRILLS[name]
        console.print(f"[bold]{drill.__doc__}[/bold]")
        try:
            figures, books = asyncio.run(
                run_drill(drill, is_loaded=name not in UNLOADED, has_standby=name in WITH_STANDBY)
            )
        except DrillError as error:
            console.print(f"  [red]LOST[/red] {error}")
            is_lost = True
            continue
        for what, figure in figures.items():
            console.print(f"  {what}: {figure:.2f}" if isinstance(figure, float) else f"  {what}: {figure}")
        console.print(
            f"  sent {books.sent}, charged {books.charged}, lost {books.lost}, twice {books.twice},"
            f" wrong states {books.wrong_states}, over budget {books.over_budget},"
            f" days whose books do not agree {books.wrong_days} of {books.days}"
        )
        if not books.is_right:
            console.print("  [red]LOST[/red] the books are not right")
            is_lost = True
    sys.exit(1 if is_lost else 0)


if __name__ == "__main__":
    main()
