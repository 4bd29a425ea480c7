"""Signs of life: a byte every second, written by a child's event loop to a pipe that it inherits.

No port is used, which a flood could fill. A loop that hangs gives no sign, like a process that is stopped.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from adloom.runtime.loops import sleep_until_next

SIGN_FD: Final = "ADLOOM_SIGN_FD"
SIGN_SECONDS: Final = 1.0
READ_BYTES_MAX: Final = 65_536


def is_supervised(variables: Mapping[str, str]) -> bool:
    """Whether a supervisor listens, which also starts this process again when it ends."""
    return bool(variables.get(SIGN_FD))


async def write_signs(variables: Mapping[str, str]) -> None:
    """Give signs until cancelled; return at once where nobody listens."""
    if not (number := variables.get(SIGN_FD)):
        return
    writing = int(number)
    os.set_inheritable(writing, False)  # noqa: FBT003 - as the system declares it
    os.set_blocking(writing, False)
    while True:
        # A full pipe has signs enough; a broken one means that the supervisor has died, and we die with it.
        with contextlib.suppress(OSError):
            os.write(writing, b".")
        await sleep_until_next(SIGN_SECONDS)


class LivenessPipe:
    """The end at which signs are read; the other is closed here as soon as the child has it."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._is_handed_over = False

    def hand_over(self) -> None:
        if not self._is_handed_over:
            self._is_handed_over = True
            os.close(self.writing)

    def take(self) -> bool:
        """Return whether there were signs since the last call."""
        try:
            return bool(os.read(self._reading, READ_BYTES_MAX))
        except BlockingIOError:
            return False

    def close(self) -> None:
        self.hand_over()
        os.close(self._reading)


async def run_with_signs(work: Callable[[], Awaitable[None]], variables: Mapping[str, str]) -> None:
    """Run work, and give signs of life meanwhile."""
    signs = asyncio.ensure_future(write_signs(variables))
    try:
        await work()
    finally:
        signs.cancel()
