"""A Valkey with a replica, and sentinels that make it the primary when that dies."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from adloom.runtime.embedded.binaries import find_unprivileged_user, find_valkey_server, give_ownership
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import CONFIG_NAME, EmbeddedValkey
from adloom.runtime.ports import free_port
from adloom.runtime.supervisor.program import Program
from adloom.runtime.valkey import VALKEY_AWAY, make_client

SERVICE: Final = "adloom"
DOWN_MILLIS: Final = 1_000
READY_SECONDS_MAX: Final = 30.0


class PairedValkey(EmbeddedValkey):
    """A server that can follow another, or be followed."""

    def __init__(self, folder: Path, *, password: str, follows: int | None = None) -> None:
        super().__init__(
            folder, listening=Listening(port=free_port()), password=password, has_all_rights=True
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
        self.port = free_port()

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
