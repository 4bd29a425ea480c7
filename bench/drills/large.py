"""100,000 campaigns on three workers: memory, time to own all shards, and charges a second beside those of one worker."""

import asyncio
import signal
import time
from typing import Final

import psutil

from adloom.budgets.messages import Confirms
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from bench.drills.cluster import Cluster
from bench.drills.failures import require_answers
from bench.drills.load import ask_every_shard, make_confirms
from bench.drills.result import Figures, require

CAMPAIGNS: Final = 100_000
AT_ONCE: Final = 2_000
ANSWER_SECONDS_MAX: Final = 15.0
RETRY_SECONDS: Final = 0.5
MEGABYTE: Final = 10**6


async def measure_large(cluster: Cluster) -> Figures:
    """100,000 campaigns: memory, shards and charges a second of three workers, beside those of one."""
    figures: Figures = {"campaigns": len(cluster.campaigns), "owned all shards, s": cluster.owned_seconds}
    figures["first charge of each, a second"] = await _charge_all(cluster)
    three = figures["charges a second, three workers"] = await _charge_all(cluster)
    for name, process in sorted(cluster.workers.items()):
        found = psutil.Process(process.pid)
        used = found.cpu_times()
        figures[f"memory of {name}, MB"] = found.memory_info().rss / MEGABYTE
        figures[f"processor of {name}, s"] = used.user + used.system

    cluster.signal("worker-1", signal.SIGKILL)
    died_at = time.perf_counter()
    killed = max(await ask_every_shard(cluster))
    figures["last shard answered after a kill, s"] = killed
    await cluster.wait_until_owned(2)
    figures["two owned all shards after a kill, s"] = time.perf_counter() - died_at
    await cluster.end_worker("worker-2")
    figures["one owned all shards, s"] = await cluster.wait_until_owned(1)
    await _charge_all(cluster)  # Until it has all campaigns in memory.
    one = figures["charges a second, one worker"] = await _charge_all(cluster)
    left = psutil.Process(cluster.workers["worker-3"].pid)
    figures["memory of one worker, MB"] = left.memory_info().rss / MEGABYTE
    figures["charges a second, ratio"] = three / one
    require_answers(cluster, killed, seconds_max=ANSWER_SECONDS_MAX)
    require(is_so=three >= one, what=f"three workers charged {three:.0f} a second, and one {one:.0f}")
    return figures


async def _charge_all(cluster: Cluster) -> float:
    """Charge every campaign once; return how many a second."""
    began_at = time.perf_counter()
    waiting = iter(cluster.campaigns)

    async def charge_next() -> None:
        for address in waiting:
            await _charge(cluster, address)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(charge_next())
    return len(cluster.campaigns) / (time.perf_counter() - began_at)


async def _charge(cluster: Cluster, address: Address) -> None:
    while True:
        try:
            await cluster.sender.send_durably(address, Confirms(make_confirms(1)))
        except UnavailableError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return
