"""Three NATS servers that keep every message of the actors three times, one of them the leader."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.pinned import STREAM
from adloom.runtime.embedded.nats import USER, EmbeddedNats
from adloom.runtime.ports import free_port

SERVERS: Final = 3
LEADER_SECONDS_MAX: Final = 60.0
LOOK_SECONDS: Final = 0.2


class _Placed(msgspec.Struct):
    leader: str = ""


class _StreamInfo(msgspec.Struct):
    cluster: _Placed = msgspec.field(default_factory=_Placed)


class ClusteredNats(EmbeddedNats):
    """A server that shares its messages with others."""

    def __init__(self, folder: Path, *, routes: Sequence[int], own_route: int, password: str) -> None:
        super().__init__(folder, port=free_port(), password=password)
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
    routes = [free_port() for _ in range(SERVERS)]
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
            await asyncio.sleep(LOOK_SECONDS)
