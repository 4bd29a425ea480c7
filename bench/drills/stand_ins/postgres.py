"""A PostgreSQL with a synchronous standby, made by pg_basebackup, that can be promoted."""

import asyncio
import os
from pathlib import Path
from typing import Final

import asyncpg

from adloom.runtime.embedded.binaries import find_postgres_home, find_unprivileged_user, give_ownership
from adloom.runtime.embedded.postgres import DATABASE, OWNER, EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.ports import free_port
from adloom.runtime.supervisor.program import Program, run

COPY_SECONDS_MAX: Final = 120
STANDBY: Final = "standby"
IS_SYNCHRONOUS: Final = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'"


class Standby(EmbeddedPostgres):
    """A server on a copy of another's data; it only reads until it is promoted."""

    async def wait_until_ready(self) -> None:
        """Wait until it answers; its database comes with the copy."""
        async with asyncio.timeout(COPY_SECONDS_MAX):
            while True:
                try:
                    connection = await asyncpg.connect(self.url)
                except (OSError, asyncpg.PostgresError):
                    await asyncio.sleep(0.1)
                else:
                    await connection.close()
                    return

    async def promote(self) -> None:
        connection = await asyncpg.connect(self.url)
        await connection.execute("SELECT pg_promote()")
        await connection.close()


async def copy_standby(primary: EmbeddedPostgres, folder: Path, *, password: str) -> Standby:
    """Copy a running server; the copy follows it once it is started."""
    user = find_unprivileged_user()
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    await asyncio.to_thread(give_ownership, folder, user)
    await run(
        Program(
            name="pg_basebackup",
            arguments=(
                str(find_postgres_home(reachable_by=user) / "bin" / "pg_basebackup"),
                f"--pgdata={folder}",
                f"--dbname=postgresql://{OWNER}:{password}@127.0.0.1:{primary.port}/{DATABASE}?application_name={STANDBY}",
                "--write-recovery-conf",
                "--checkpoint=fast",
            ),
            environment={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            user=user,
        ),
        seconds_max=COPY_SECONDS_MAX,
    )
    return Standby(folder, listening=Listening(port=free_port()), password=password)


async def make_synchronous(primary: EmbeddedPostgres) -> None:
    """Have the primary answer when the standby has a commit too: else a failover loses the last ones."""
    connection = await asyncpg.connect(primary.url)
    await connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
    await connection.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(COPY_SECONDS_MAX):
        while not await connection.fetchval(IS_SYNCHRONOUS):  # noqa: ASYNC110 - the server sends no notice
            await asyncio.sleep(0.05)
    await connection.close()


def name_both(primary: EmbeddedPostgres, standby: Standby) -> str:
    """Return a URL that names both servers."""
    login = primary.url.partition("@")[0]
    return f"{login}@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{DATABASE}"
