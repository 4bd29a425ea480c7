"""Connects to whichever of several PostgreSQL servers takes writes.

`DATABASE_URL` may name several: `postgresql://user:password@one:5432,two:5432/adloom`. The driver tries them one after
another within one time, so the first that is cut off would use up all of it. Here each has its own, and the one that was
found last is tried first.
"""

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

CONNECT_SECONDS_MAX: Final = 5.0
WRITABLE: Final = SessionAttribute.read_write

# What a server that cannot be used raises: it is away, it starts, or it only reads.
_NEXT: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


def list_servers(database_url: str) -> list[str]:
    """Return an address for each server that a URL names."""
    parts = urlsplit(database_url)
    login, at, hosts = parts.netloc.rpartition("@")
    return [urlunsplit(parts._replace(netloc=f"{login}{at}{host}")) for host in hosts.split(",")]


class PrimaryConnector:
    """Opens connections for a pool; it has the signature of the driver's own function."""

    def __init__(self, database_url: str) -> None:
        self._servers = list_servers(database_url)

    async def connect(self, *_: object, timeout: float = CONNECT_SECONDS_MAX, **options: Any) -> Any:  # noqa: ANN401, ASYNC109 - the driver's
        """Open a connection to the server that takes writes, or raise what the last one raised."""
        if len(self._servers) == 1:
            return await asyncpg.connect(self._servers[0], timeout=timeout, **options)
        error: BaseException | None = None
        for server in list(self._servers):
            try:
                async with asyncio.timeout(timeout / len(self._servers)):
                    connection: Any = await asyncpg.connect(server, target_session_attrs=WRITABLE, **options)
            except _NEXT as one:
                error = one
            else:
                self._prefer(server)
                return connection
        assert error is not None
        raise error

    def _prefer(self, server: str) -> None:
        if self._servers[0] != server:
            self._servers = [server, *(one for one in self._servers if one != server)]


async def connect(database_url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Open one connection to the server that takes writes."""
    return await PrimaryConnector(database_url).connect()
