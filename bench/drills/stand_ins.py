"""Servers with a stand-in: three of NATS, a PostgreSQL with a standby, a Valkey with a replica and sentinels."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec

from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.pinned import STREAM
from adloom.runtime.embedded.binaries import (
    find_postgres_home,
    find_unprivileged_user,
    find_valkey_server,
    give_ownership,
)
from adloom.runtime.embedded.nats import USER, EmbeddedNats
from adloom.runtime.embedded.postgres import DATABASE, OWNER, EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import CONFIG_NAME, EmbeddedValkey
from adloom.runtime.ports import find_port
from adloom.runtime.supervisor.program import Program, run
from adloom.runtime.valkey import VALKEY_AWAY, make_client

SERVERS: Final = 3
LEADER_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.2
COPY_SECONDS_MAX: Final = 120
STANDBY: Final = "standby"
IS_SYNCHRONOUS: Final = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'"
SERVICE: Final = "adloom"
DOWN_MILLIS: Final = 1_000
READY_SECONDS_MAX: Final = 30.0


class _Placed(msgspec.Struct):
    leader: str = ""


class _StreamInfo(msgspec.Struct):
    cluster: _Placed = msgspec.field(default_factory=_Placed)


class ClusteredNats(EmbeddedNats):
    """A server that shares its messages with others."""

    def __init__(self, folder: Path, *, routes: Sequence[int], own_route: int, password: str) -> None:
        super().__init__(folder, port=find_port(), password=password)
        self.name = folder.name
        self._routes = routes
        self._own_route = own_route
        self._route_password = password

    def _write_config(self) -> str:
        access = f"{USER}:{self._route_password}"
        routes = ", ".join(f'"nats-route://{access}@127.0.0.1:{one}"' for one in self._routes)
        return (
            super()._write_config().replace('server_name: "adloom"', f'server_name: "{self.name}"')
            + f'cluster {{ name: "drill", listen: "127.0.0.1:{self._own_route}",'
            + f' authorization {{ user: "{USER}", password: "{self._route_password}" }}, routes: [{routes}] }}\n'
        )


def make_servers(folder: Path, *, password: str) -> list[ClusteredNats]:
    routes = [find_port() for _ in range(SERVERS)]
    return [
        ClusteredNats(folder / f"nats-{number}", routes=routes, own_route=route, password=password)
        for number, route in enumerate(routes, 1)
    ]


async def find_leader(connection: NatsConnection) -> str:
    """Return the name of the server that leads the stream of the actors."""
    async with asyncio.timeout(LEADER_SECONDS_MAX):
        while True:
            answer = await connection.request(f"$JS.API.STREAM.INFO.{STREAM}", b"")
            leader = msgspec.json.decode(answer, type=_StreamInfo).cluster.leader
            if leader:
                return leader
            await asyncio.sleep(POLL_SECONDS)


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
    return Standby(folder, listening=Listening(port=find_port()), password=password)


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


class PairedValkey(EmbeddedValkey):
    """A server that can follow another, or be followed."""

    def __init__(self, folder: Path, *, password: str, follows: int | None = None) -> None:
        super().__init__(
            folder, listening=Listening(port=find_port()), password=password, has_all_rights=True
        )
        self._follows = follows

    def _write_config(self) -> str:
        following = f"replicaof 127.0.0.1 {self._follows}\n" if self._follows else ""
        return (
            f"{super()._write_config()}masterauth {self._password}\nrepl-diskless-sync-delay 0\n{following}"
        )


class SentinelServer:
    """A sentinel that watches one primary."""

    def __init__(self, folder: Path, *, primary: int, password: str, quorum: int) -> None:
        self._folder = folder
        self._primary = primary
        self._password = password
        self._quorum = quorum
        self._user = find_unprivileged_user()
        self.port = find_port()

    @property
    def program(self) -> Program:
        return Program(
            name="sentinel",
            arguments=(
                str(find_valkey_server(reachable_by=self._user)),
                str(self._folder / CONFIG_NAME),
                "--sentinel",
            ),
            environment={"PATH": os.environ.get("PATH", os.defpath)},
            user=self._user,
        )

    async def prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        config = (
            f"bind 127.0.0.1\nport {self.port}\ndir {self._folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {self._primary} {self._quorum}\n"
            f"sentinel auth-pass {SERVICE} {self._password}\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_MILLIS}\n"
            f"sentinel failover-timeout {SERVICE} 5000\n"
        )
        (self._folder / CONFIG_NAME).write_text(config, encoding="ascii")
        await asyncio.to_thread(give_ownership, self._folder, self._user)

    async def wait_until_ready(self) -> None:
        """Wait until it answers."""
        await self._wait(lambda client: client.ping())

    async def wait_until_known(self, sentinels: int) -> None:
        """Wait until it knows a replica and all sentinels: before, they could not agree."""

        async def knows_all(client: Any) -> bool:  # noqa: ANN401 - the stubs do not know the calls
            replicas = await client.sentinel_slaves(SERVICE)
            others = await client.sentinel_sentinels(SERVICE)
            return len(others) == sentinels - 1 and any(not one["is_disconnected"] for one in replicas)

        await self._wait(knows_all)

    async def wait_until_moved(self, port: int) -> None:
        """Wait until another server is the primary."""

        async def has_moved(client: Any) -> bool:  # noqa: ANN401 - the stubs do not know the calls
            return (await client.sentinel_get_master_addr_by_name(SERVICE))[1] == port

        await self._wait(has_moved)

    async def _wait(self, is_so: Callable[[Any], Awaitable[bool]]) -> None:
        client = make_client(f"redis://127.0.0.1:{self.port}", is_decoding=True)
        async with asyncio.timeout(READY_SECONDS_MAX):
            while True:
                with contextlib.suppress(*VALKEY_AWAY):
                    if await is_so(client):
                        break
                await asyncio.sleep(0.1)
        await client.aclose()


def name_sentinels(sentinels: list[SentinelServer], password: str) -> str:
    """Return a URL that names the sentinels."""
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in sentinels)
    return f"redis+sentinel://:{password}@{hosts}/{SERVICE}"
