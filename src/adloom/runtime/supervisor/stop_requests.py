"""Requests to stop: the first asks, a later one insists."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# One Ctrl-C may reach us twice: from the terminal, and passed on by the program that started us.
SAME_SECONDS = 0.5


class StopRequests:
    """Tells the first request from those that come while the stop is under way."""

    def __init__(self, *, ask: Callable[[], object], insist: Callable[[], object]) -> None:
        self._ask = ask
        self._insist = insist
        self._asked_at: float | None = None

    def receive(self, now: float) -> None:
        """Take a request, at a moment of any steady clock in seconds."""
        if self._asked_at is None:
            self._asked_at = now
            self._ask()
        elif now - self._asked_at >= SAME_SECONDS:
            self._insist()


@contextlib.contextmanager
def handle_stop_signals(requests: StopRequests) -> Generator[None]:
    """Take the signals by which a terminal, a shell or a service manager asks a process to stop."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, lambda: requests.receive(loop.time()))
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
