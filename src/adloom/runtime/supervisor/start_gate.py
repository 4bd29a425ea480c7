"""Lets children load their code while what they need is still being started.

A gate is a pipe to which nobody writes: a child waits at the end that it inherits until we close ours. It stays
open then, for children that are started again.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from adloom.runtime.supervisor.child import ChildSpec

START_FD: Final = "ADLOOM_START_FD"


class StartGate:
    """Holds children until what they need is there."""

    def __init__(self) -> None:
        self._fd, self._closing = os.pipe()
        self._is_open = False

    def hold(self, children: Sequence[ChildSpec]) -> list[ChildSpec]:
        """Let children wait at the gate."""
        return [
            replace(
                child,
                program=replace(
                    child.program, environment={**child.program.environment, START_FD: str(self._fd)}
                ),
                inherited_fds=(*child.inherited_fds, self._fd),
            )
            for child in children
        ]

    def open(self) -> None:
        if not self._is_open:
            self._is_open = True
            os.close(self._closing)

    def close(self) -> None:
        """Give back what the system gave; children that still wait go on, and fail."""
        self.open()
        os.close(self._fd)


async def wait_for_start(variables: Mapping[str, str]) -> None:
    """Wait until the gate is open; return at once where there is none."""
    if not (number := variables.get(START_FD)):
        return
    loop, opened, waiting = asyncio.get_running_loop(), asyncio.Event(), int(number)
    os.set_inheritable(waiting, False)  # noqa: FBT003 - as the system declares it
    loop.add_reader(waiting, opened.set)
    try:
        await opened.wait()
    finally:
        loop.remove_reader(waiting)
        os.close(waiting)
