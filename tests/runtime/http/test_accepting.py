"""New connections to a process whose turns of the loop are long."""

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any, ClassVar

import uvloop

from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.server import CONNECTIONS_PER_TICK, serve


class Counting(asyncio.Protocol):
    """Takes connections, and does nothing with them."""

    made: ClassVar[list[asyncio.BaseTransport]] = []

    def __init__(self, **_: Any) -> None:
        pass

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made.append(transport)


async def made_a_tick(connections: int) -> list[int]:
    """Have so many clients connect at once, and tell how many of them each turn of the loop has taken."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        address = listener.getsockname()
        serving = asyncio.create_task(
            serve(PlainApp({}), listener, drain_seconds_max=1, protocol=Counting), name="serving"
        )
        async with asyncio.timeout(10):
            stack.enter_context(socket.create_connection(address))
            while not Counting.made:  # noqa: ASYNC110 - somebody else's task
                await asyncio.sleep(0.01)
            for _ in range(connections):  # They wait in the backlog: nobody turns the loop meanwhile.
                stack.enter_context(socket.create_connection(address))
            taken: list[int] = []
            while sum(taken) < connections:
                before = len(Counting.made)
                await asyncio.sleep(0)
                taken.append(len(Counting.made) - before)
            for transport in Counting.made:
                transport.close()
            os.kill(
                os.getpid(), signal.SIGTERM
            )  # Which it takes for itself, as a process of the product does.
            await serving
    return taken


def test_a_turn_of_the_loop_takes_several_connections() -> None:
    with asyncio.Runner(
        loop_factory=uvloop.new_event_loop
    ) as runner:  # As every process of the product has it.
        taken = runner.run(made_a_tick(3 * CONNECTIONS_PER_TICK))

    assert max(taken) == CONNECTIONS_PER_TICK
