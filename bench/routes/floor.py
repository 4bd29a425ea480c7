"""The least that a request costs in Python: uvloop and httptools, and an answer that never changes.

Run as a process of its own: `python -m bench.routes.floor PORT BYTES`.
"""

import asyncio
import sys

import httptools
import uvloop


class ConstantAnswer(asyncio.Protocol):
    """Parses requests, and answers each with the same bytes."""

    answer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  as TCP's is
        self._write = transport.write
        self._feed = httptools.HttpRequestParser(self).feed_data

    def data_received(self, data: bytes) -> None:
        self._feed(data)

    def on_message_complete(self) -> None:
        self._write(self.answer)


async def serve(port: int, size: int) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % size
    ConstantAnswer.answer = head + b"x" * size
    server = await asyncio.get_running_loop().create_server(ConstantAnswer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
