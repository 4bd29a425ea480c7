"""A relay before a server, whose connections can be silenced: open at both ends, and no data passes."""

import asyncio
import contextlib
import math
import threading
from collections.abc import AsyncGenerator, Generator


class Relay:
    """Passes bytes both ways over the connections that are not silenced."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.connections = 0
        self._target_port = target_port
        self._silent_up_to: float = 0
        self._open: set[asyncio.StreamWriter] = set()

    def silence(self) -> None:
        """Block all existing connections; later ones work."""
        self._silent_up_to = self.connections

    def cut(self) -> None:
        """Block all connections, later ones too, as a network that drops everything."""
        self._silent_up_to = math.inf

    def mend(self) -> None:
        """Let later connections through; the others have lost data, so they are closed."""
        self.silence()
        for writer in self._open:
            writer.close()

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
            self._open |= {writer, far_writer}
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(number, reader, far_writer))
                group.create_task(self._pass_on(number, far_reader, writer))
            self._open -= {writer, far_writer}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator["Relay"]:
        server = await asyncio.start_server(self._relay, "127.0.0.1")
        async with server:
            self.port = server.sockets[0].getsockname()[1]
            yield self


class Gate:
    """A relay with a thread of its own, for tests without an event loop."""

    def __init__(self, target_port: int) -> None:
        self._relay = Relay(target_port)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._is_open = threading.Event()

    @property
    def port(self) -> int:
        return self._relay.port

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._relay.cut)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._relay.mend)

    @contextlib.contextmanager
    def running(self) -> Generator["Gate"]:
        thread = threading.Thread(target=self._loop.run_until_complete, args=[self._run()])
        thread.start()
        try:
            assert self._is_open.wait(60)
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join()
            self._loop.close()

    async def _run(self) -> None:
        async with self._relay.running():
            self._is_open.set()
            await self._stop.wait()
            self._relay.mend()
