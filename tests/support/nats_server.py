"""A real NATS server, and connections to it."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.embedded.nats import EmbeddedNats
from adloom.runtime.ports import find_port
from tests.support.services import PASSWORD, memory_folder, running


@contextlib.contextmanager
def running_nats() -> Generator[EmbeddedNats]:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-", dir=memory_folder()))
    folder.chmod(0o755)
    server = EmbeddedNats(folder / "nats", port=find_port(), password=PASSWORD)
    asyncio.run(server.prepare())
    try:
        with running(server.program):
            asyncio.run(server.wait_until_ready())
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[NatsConnection]:
    connection = NatsConnection(url, name="test")
    await connection.open(asyncio.Event())
    try:
        yield connection
    finally:
        await connection.close()


async def delete_stream(url: str) -> None:
    async with connected(url) as connection:
        await connection.request("$JS.API.STREAM.DELETE.BRAIN", b"")
