"""Drill 13: a worker in a network of its own, which is cut off and connected again. It needs root and `ip`."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

from adloom.runtime.actors.actor import SHARDS
from bench.drills.cluster import Cluster
from bench.drills.failures import ANSWER_SECONDS_MAX, CALM_SECONDS, FROZEN_SECONDS, require_answers
from bench.drills.load import ask_every_shard
from bench.drills.result import Figures, NotPossibleError, require

NAME: Final = "adloom-drill"
OUTSIDE, INSIDE = "adloom-out", "adloom-in"  # The two ends of the cable.
NEAR, FAR = "10.213.77.1", "10.213.77.2"
WORKER: Final = "worker-far"
OTHERS_MAX: Final = 85  # Shards of three workers when a fourth has its share, or nearly.
SHARE_SECONDS_MAX: Final = 40.0
POLL_SECONDS: Final = 0.2
PIECE_BYTES: Final = 65_536


async def cut_off_worker(cluster: Cluster) -> Figures:
    """13. A worker's network is cut for 20 s: others answer within 5 s, and it comes back without harm."""
    async with _open_namespace() as enter, _open_relays(cluster):
        await cluster.add_worker(WORKER, prefix=enter, host=NEAR)
        await _wait_for_others(cluster, lambda held: held <= OTHERS_MAX, "the worker has no share")
        await _run_ip("link", "set", OUTSIDE, "down")
        began_at = time.perf_counter()
        seconds = max(await ask_every_shard(cluster))
        taken = await _wait_for_others(cluster, lambda held: held == SHARDS, "others have not all shards")
        await asyncio.sleep(max(0.0, FROZEN_SECONDS - (time.perf_counter() - began_at)))
        await _run_ip("link", "set", OUTSIDE, "up")
        back = await _wait_for_others(
            cluster, lambda held: held <= OTHERS_MAX, "the worker has no share again"
        )
        await asyncio.sleep(CALM_SECONDS * 2)
        fenced = sum(one.fenced_writes for one in (await cluster.read_shards()).values())
        await cluster.end_worker(WORKER)
    require_answers(cluster, seconds, seconds_max=ANSWER_SECONDS_MAX)
    return {
        "last shard answered, s": seconds,
        "others had all shards then, s": taken,
        "had its share again, s": back,
        "writes refused": fenced,
    }


async def _wait_for_others(cluster: Cluster, is_so: Callable[[int], bool], what: str) -> float:
    """Wait until the other workers have so many shards: what they say is never older than the cut."""
    began_at = time.perf_counter()
    while True:
        shards = await cluster.read_shards()
        if is_so(sum(len(one.held) for name, one in shards.items() if name != WORKER)):
            return time.perf_counter() - began_at
        seconds = time.perf_counter() - began_at
        require(is_so=seconds <= SHARE_SECONDS_MAX * cluster.patience, what=f"{what} after {seconds:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


@contextlib.asynccontextmanager
async def _open_namespace() -> AsyncGenerator[Sequence[str]]:
    """Make a network with one address, and a cable to it; yields what a command in it begins with."""
    program = shutil.which("ip")
    if program is None:
        raise NotPossibleError("it needs `ip` of iproute2")
    await _run_ip("netns", "add", NAME)
    try:
        await _run_ip("link", "add", OUTSIDE, "type", "veth", "peer", "name", INSIDE)
        await _run_ip("link", "set", INSIDE, "netns", NAME)
        await _run_ip("addr", "add", f"{NEAR}/24", "dev", OUTSIDE)
        await _run_ip("link", "set", OUTSIDE, "up")
        await _run_ip("-n", NAME, "addr", "add", f"{FAR}/24", "dev", INSIDE)
        for device in (INSIDE, "lo"):
            await _run_ip("-n", NAME, "link", "set", device, "up")
        yield program, "netns", "exec", NAME
    finally:
        # With it goes the cable.
        await _run_ip("netns", "del", NAME)


async def _run_ip(*words: str) -> None:
    process = await asyncio.create_subprocess_exec("ip", *words, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        raise NotPossibleError(f"it needs root: `ip {' '.join(words)}` says: {said.decode().strip()}")


@contextlib.asynccontextmanager
async def _open_relays(cluster: Cluster) -> AsyncGenerator[None]:
    """Pass on what comes over the cable to the servers, which listen on loopback."""
    async with contextlib.AsyncExitStack() as stack:
        for port in cluster.ports:
            server = await asyncio.start_server(_make_relay(port), NEAR, port)
            await stack.enter_async_context(server)
        yield


def _make_relay(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, far_writer))
                group.create_task(_pass_on(far_reader, writer))

    return relay


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(PIECE_BYTES):
            target.write(piece)
            await target.drain()
    target.close()
