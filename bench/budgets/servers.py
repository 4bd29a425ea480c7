"""A worker with temporary servers, run as `adloom up` runs them."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import msgspec

from adloom.budgets.transport.wire import INBOX_CHANNEL
from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import Program, send, start
from adloom.runtime.valkey import Valkey, open_valkey
from bench.database import PASSWORD, POOL_SIZE_MAX, open_folder
from bench.load import LoadError
from bench.processes import list_descendants, measure_usage, read_command_line
from bench.product import filter_environment

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 15.0
LOOK_SECONDS: Final = 0.02
QUIET_SECONDS: Final = 0.5
QUIET_SHARE_MAX: Final = 0.05  # Of a core.


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """PostgreSQL and Valkey, and the log file of a worker."""

    pool: Pool
    valkey: Valkey
    database_url: str
    redis_url: str
    log: Path


@contextlib.asynccontextmanager
async def run_servers() -> AsyncGenerator[Servers]:
    """Run servers with an empty catalog, and remove them at the end."""
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(open_folder())
        postgres = EmbeddedPostgres(folder / "postgres", port=free_port(), password=PASSWORD)
        valkey = EmbeddedValkey(folder / "valkey", port=free_port(), password=PASSWORD)
        for server in (postgres, valkey):
            await server.prepare()
            await stack.enter_async_context(
                _run_program(server.program, folder / f"{server.program.name}.log")
            )
            await server.wait_until_ready()
        await migrate.upgrade(postgres.url)
        yield Servers(
            pool=await stack.enter_async_context(open_pool(postgres.url, size_max=POOL_SIZE_MAX)),
            valkey=await stack.enter_async_context(open_valkey(valkey.url)),
            database_url=postgres.url,
            redis_url=valkey.url,
            log=folder / "worker.log",
        )


@contextlib.asynccontextmanager
async def run_worker(servers: Servers) -> AsyncGenerator[int]:
    """Run a production worker, wait until its budget actors receive messages, and yield its pid."""
    program = Program(
        name="worker",
        arguments=(sys.executable, "-P", "-m", "adloom.app.worker"),
        environment={
            **filter_environment(os.environ),
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "WORKER_PORT": str(free_port()),
            "ADLOOM_PROCESS": "worker",
        },
    )
    async with _run_program(program, servers.log) as pid:
        ends_at = asyncio.get_running_loop().time() + START_SECONDS_MAX
        while not (await servers.valkey.pubsub_numsub(INBOX_CHANNEL))[0][1]:
            if asyncio.get_running_loop().time() > ends_at:
                said = servers.log.read_text(encoding="utf-8", errors="replace")
                raise LoadError(f"The worker did not start; it said:\n{said[-4000:].strip()}")
            await asyncio.sleep(LOOK_SECONDS)
        yield pid


async def wait_until_quiet(pid: int, *, seconds_max: float) -> None:
    """Wait until a process is idle."""
    for _ in range(int(seconds_max / QUIET_SECONDS)):
        before = measure_usage([pid]).cpu_seconds
        await asyncio.sleep(QUIET_SECONDS)
        if measure_usage([pid]).cpu_seconds - before < QUIET_SECONDS * QUIET_SHARE_MAX:
            return


def find_database_pids() -> list[int]:
    return [
        pid
        for pid in list_descendants(os.getpid())
        if any("postgres" in word for word in read_command_line(pid)[:1])
    ]


@contextlib.asynccontextmanager
async def _run_program(program: Program, log: Path) -> AsyncGenerator[int]:
    with log.open("wb") as output:
        process = await start(program, output=output)
    try:
        yield process.pid
    finally:
        send(process, program.stop_signal)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            send(process, program.death_signal)
            await process.wait()
