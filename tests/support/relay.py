"""A relay before a server, whose connections can be silenced: open at both ends, and no data passes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator


class Relay:
    """Passes bytes both ways over the connections that are not silenced."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.connections = 0
        self._target_port = target_port
        self._silent_up_to = 0

    def silence(self) -> None:
        """Block all existing connections; later ones work."""
        self._silent_up_to = self.connections

    async def _pass_on(self, number: int, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(65_536):
                if number > self._silent_up_to:
                    target.write(piece)
        target.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        # As in `website.py`, a handler must not end as cancelled.
        with contextlib.suppress(asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(number, reader, far_writer))
                group.create_task(self._pass_on(number, far_reader, writer))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator["Relay"]:
        server = await asyncio.start_server(self._relay, "127.0.0.1")
        async with server:
            self.port = server.sockets[0].getsockname()[1]
            yield self
