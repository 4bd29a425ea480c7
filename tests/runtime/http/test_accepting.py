"""New connections to a process with long event-loop iterations, and to one that was at rest."""

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any, ClassVar

import uvicorn
import uvloop

from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.server import CONNECTIONS_PER_TICK, GracefulServer, TimeoutProtocol, serve
from tests.support.eventually import eventually


class CountingProtocol(asyncio.Protocol):
    """Accepts connections, and does nothing with them."""

    made: ClassVar[list[asyncio.BaseTransport]] = []

    def __init__(self, **_: Any) -> None:
        pass

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made.append(transport)


async def count_accepted(connections: int) -> list[int]:
    """Connect this many clients, and return how many each event-loop iteration has accepted."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        address = listener.getsockname()
        serving = asyncio.create_task(
            serve(PlainApp({}), listener, drain_seconds_max=1, protocol=CountingProtocol), name="serving"
        )
        async with asyncio.timeout(60):
            stack.enter_context(socket.create_connection(address))
            while not CountingProtocol.made:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
            for _ in range(connections):  # They wait in the backlog: the loop does not run meanwhile.
                stack.enter_context(socket.create_connection(address))
            taken: list[int] = []
            while sum(taken) < connections:
                before = len(CountingProtocol.made)
                await asyncio.sleep(0)
                taken.append(len(CountingProtocol.made) - before)
            for transport in CountingProtocol.made:
                transport.close()
            os.kill(
                os.getpid(), signal.SIGTERM
            )  # The server handles the signal, as in a process of the product.
            await serving
    return taken


def test_one_event_loop_iteration_accepts_several_connections() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # As in every process of the product.
        taken = runner.run(count_accepted(3 * CONNECTIONS_PER_TICK))

    assert max(taken) == CONNECTIONS_PER_TICK


async def test_the_date_is_written_for_the_first_connection_and_while_there_is_one() -> None:
    config = uvicorn.Config(PlainApp({}), http=TimeoutProtocol, lifespan="off", log_config=None)
    server, old = GracefulServer(config), [(b"date", b"of yesterday")]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(60):
            await eventually(lambda: server.started, seconds=30)
            for _ in range(2):  # After the first it is at rest again.
                server.server_state.default_headers = old
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"\r\ndate: " in (head := await reader.readuntil(b"\r\n\r\n"))
                assert b"yesterday" not in head
                server.server_state.default_headers = old
                await eventually(lambda: server.server_state.default_headers != old, seconds=30)
                writer.close()
                await eventually(lambda: not server.server_state.connections, seconds=30)
            server.handle_exit(signal.SIGTERM, None)
            await serving
