"""A server that answers anything and keeps the bodies it got, on a thread of its own."""

import asyncio
import contextlib
import threading
from typing import Self


class SmallServer:
    def __init__(self, *, status: int = 200, requests_per_connection: int = 1_000_000) -> None:
        self.bodies: list[bytes] = []
        self.heads: list[bytes] = []
        self.port = 0
        self._status = status
        self._requests_per_connection = requests_per_connection
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._is_listening = threading.Event()
        self._stopping = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_listening.wait(60)
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        await self._stopping.wait()
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            for _ in range(self._requests_per_connection):
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                length = head.lower().partition(b"content-length:")[2].partition(b"\r")[0]
                self.bodies.append(await reader.readexactly(int(length or 0)))
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % self._status)
        writer.close()
