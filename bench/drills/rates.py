"""Drill 14 and the large one: messages a second through NATS beside one process, and of three workers beside one."""

import asyncio
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Final

import psutil

from adloom.budgets.addresses import OWNER_KEY
from adloom.budgets.messages import AskBudget, Confirms
from adloom.budgets.transport.inbox import ValkeyBroadcaster
from adloom.core.clock import SystemClock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from adloom.runtime.random import make_system_chance
from bench.drills.cluster import Cluster
from bench.drills.equality.campaigns import make_played
from bench.drills.equality.hosts import PlayedHost, run_local
from bench.drills.failures import require_answers
from bench.drills.load import ask_every_shard, make_confirms
from bench.drills.result import Figures, NotPossibleError, require

SECONDS: Final = 5.0
ASKED_AT_ONCE: Final = 200
SENT_AT_ONCE: Final = 1_000
MEGABYTE: Final = 10**6
LONE: Final = "worker-alone"
SHARING: Final = ("ADLOOM_NATS_URL", "ADLOOM_NATS_REPLICAS", "ADLOOM_WORKER_ROLES")  # It runs without these.
START_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
LARGE_CAMPAIGNS: Final = 100_000
CHARGED_AT_ONCE: Final = 2_000
ANSWER_SECONDS_MAX: Final = 15.0
RETRY_SECONDS: Final = 0.5


async def measure_rates(cluster: Cluster) -> Figures:
    """14. Questions and durable messages a second, latency, memory and start, and the ratios to one process."""
    started = {"start, s": cluster.owned_seconds, "memory at the start, MB": _read_memory(cluster)}
    shared = {**await _measure(cluster.sender, cluster), **started}
    loaded = _read_memory(cluster)
    for name in list(cluster.workers):
        await cluster.end_worker(name)
    clock, audience = SystemClock(), ValkeyBroadcaster(cluster.valkey)
    played = make_played(cluster.pool, clock)
    async with run_local(cluster.pool, played, clock, audience=audience, chance=make_system_chance()) as host:
        local = await _measure(host, cluster)
    local |= await _measure_start(cluster)
    ratios = {f"{what}, ratio": shared[what] / local[what] for what in shared}
    return {
        **{f"{what}, NATS": figure for what, figure in shared.items()},
        **{f"{what}, one process": figure for what, figure in local.items()},
        **ratios,
        "memory of a worker under load, MB": loaded,
    }


async def _measure_start(cluster: Cluster) -> Figures:
    """Start a worker without NATS; it has all roles, and has begun when all budgets are its own."""
    program = shutil.which("env")
    if program is None:
        raise NotPossibleError("it needs `env`")
    began_at = time.perf_counter()
    await cluster.add_worker(LONE, prefix=(program, *(word for name in SHARING for word in ("-u", name))))
    async with asyncio.timeout(START_SECONDS_MAX * cluster.patience):
        while not await cluster.valkey.exists(OWNER_KEY):  # noqa: ASYNC110 - the worker sends no notice
            await asyncio.sleep(POLL_SECONDS)
    figures = {"start, s": time.perf_counter() - began_at, "memory at the start, MB": _read_memory(cluster)}
    await cluster.end_worker(LONE)
    return figures


def _read_memory(cluster: Cluster) -> float:
    """Return the memory of the largest worker."""
    return max(psutil.Process(one.pid).memory_info().rss for one in cluster.workers.values()) / MEGABYTE


async def _measure(host: PlayedHost, cluster: Cluster) -> dict[str, float]:
    seconds: list[float] = []

    async def ask(number: int) -> None:
        began_at = time.perf_counter()
        await host.ask(cluster.campaigns[number % len(cluster.campaigns)], AskBudget(), seconds_max=20)
        seconds.append(time.perf_counter() - began_at)

    async def send(number: int) -> None:
        address = cluster.campaigns[number % len(cluster.campaigns)]
        await host.send_durably(address, Confirms(make_confirms(1)))

    asks = await _repeat(ask, at_once=ASKED_AT_ONCE)
    ordered = sorted(seconds)
    messages = await _repeat(send, at_once=SENT_AT_ONCE)
    return {
        "questions a second": asks,
        "median answer, ms": ordered[len(ordered) // 2] * 1000,
        "99 % answer, ms": ordered[len(ordered) * 99 // 100] * 1000,
        "charges a second": messages,
    }


async def _repeat(do: Callable[[int], Awaitable[None]], *, at_once: int) -> float:
    """Do something again and again, many at once; return how often a second."""
    ends_at = time.perf_counter() + SECONDS
    done = 0

    async def repeat(first: int) -> None:
        nonlocal done
        number = first
        while time.perf_counter() < ends_at:
            await do(number)
            number += at_once
            done += 1

    began_at = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for first in range(at_once):
            group.create_task(repeat(first))
    return done / (time.perf_counter() - began_at)


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
        for _ in range(CHARGED_AT_ONCE):
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
