"""Run uvicorn on a socket that is there already, and stop it without losing what is under way."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator
from types import FrameType

import uvicorn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class GracefulServer(uvicorn.Server):
    """Stops on a signal and returns, where uvicorn would send itself the signal again.

    What surrounds the server (the appender, the pools) has to be closed after it, in order.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Turn signals into a request to stop."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ask the server to finish what it has begun; a second signal does not wait for that."""
        del sig, frame
        self.force_exit = self.should_exit
        self.should_exit = True


async def serve(config: uvicorn.Config, listener: socket.socket) -> None:
    """Serve on a listening socket until told to stop."""
    await GracefulServer(config).serve(sockets=[listener])
