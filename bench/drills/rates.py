"""Drill 14: questions and messages a second through NATS, as ratios to the host in one process in the same run."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import msgspec
import psutil

from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.entity_config import EntityConfigurer
from adloom.budgets.kinds import make_kinds
from adloom.budgets.messages import AskBudget, Confirms
from adloom.budgets.money.store import MoneyWriter
from adloom.budgets.transport.inbox import ValkeyBroadcaster
from adloom.core.clock import SystemClock
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.random import system_chance
from bench.drills.cluster import Cluster
from bench.drills.load import make_confirms

SECONDS: Final = 5.0
ASKED_AT_ONCE: Final = 200
SENT_AT_ONCE: Final = 1_000
HOLD_SECONDS: Final = 300
MEGABYTE: Final = 10**6


class MeasuredHost(Protocol):
    """What both hosts can do."""

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> Any: ...  # noqa: ANN401 - each kind's own

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]": ...


async def measure_rates(cluster: Cluster) -> dict[str, float]:
    """14. Questions a second, durable messages a second, latency and memory, and the ratios to one process."""
    shared = await _measure(cluster.sender, cluster)
    memory = [psutil.Process(one.pid).memory_info().rss / MEGABYTE for one in cluster.workers.values()]
    for name in list(cluster.workers):
        cluster.signal(name, signal.SIGTERM)
        await cluster.workers[name].wait()
    async with _run_local(cluster) as host:
        local = await _measure(host, cluster)
    ratios = {f"{what}, ratio": shared[what] / local[what] for what in shared}
    return {
        **{f"{what}, NATS": figure for what, figure in shared.items()},
        **{f"{what}, one process": figure for what, figure in local.items()},
        **ratios,
        "memory of a worker, MB": max(memory),
    }


async def _measure(host: MeasuredHost, cluster: Cluster) -> dict[str, float]:
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


@asynccontextmanager
async def _run_local(cluster: Cluster) -> AsyncGenerator[ActorHost]:
    clock = SystemClock()
    host = ActorHost(
        make_kinds(),
        PostgresStateStore(cluster.pool, MoneyWriter(), clock),
        introduction=EntityConfigurer(BudgetCatalog(cluster.pool), clock, hold_seconds=HOLD_SECONDS),
        audience=ValkeyBroadcaster(cluster.valkey),
        clock=clock,
        chance=system_chance(),
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(host.run(stop))
        while not host.is_open:  # noqa: ASYNC110 - it opens when its task has begun
            await asyncio.sleep(0)
        yield host
        stop.set()
