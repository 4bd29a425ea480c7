"""Upgrades the schema in a process of its own: what that loads, 30 MB, ends with it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from adloom.runtime.schema import DatabaseError, describe_database
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import ProgramFailedError, Start, make_our_program, run, start
from adloom.runtime.supervisor.start_gate import StartGate

UPGRADE: Final = "schema"


@contextlib.asynccontextmanager
async def prepare_upgrade(
    database_url: str, start: Start = start, *, is_expected: bool
) -> AsyncGenerator[Callable[[str], Awaitable[None]]]:
    """Have what upgrades a schema; where it will be needed, its tools are loaded while the database starts."""
    with contextlib.closing(StartGate()) as gate:
        loading = [asyncio.ensure_future(_run_upgrade(database_url, gate, start))] if is_expected else []

        async def upgrade(url: str) -> None:
            gate.open()
            await (loading.pop() if loading else _run_upgrade(url, gate, start))

        try:
            yield upgrade
        finally:
            for unneeded in loading:
                unneeded.cancel()
                await asyncio.wait([unneeded])


async def _run_upgrade(database_url: str, gate: StartGate, start: Start) -> None:
    program = make_our_program(
        UPGRADE, "adloom.runtime.migrate", environment={**os.environ, "DATABASE_URL": database_url}
    )
    [held] = gate.hold([ChildSpec(program=program)])
    try:
        # A large installation may need hours.
        await run(held.program, seconds_max=None, inherited_fds=held.inherited_fds, start=start)
    except (OSError, ProgramFailedError) as error:
        raise DatabaseError(f"{describe_database(database_url)} cannot be upgraded: {error}") from error
