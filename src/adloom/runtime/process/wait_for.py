"""Puts Python 3.12's `asyncio.wait_for` in the place of 3.11's, which may lose a cancellation.

It does where what it waits for is done in the same moment. Then a task that was told to end goes on, and who waits for its
end waits for ever. The Valkey driver sends every command in one, and nats-py waits for its answers so.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def wait_for(fut: Awaitable[T], timeout: float | None) -> T:  # noqa: ASYNC109 - as it is called
    """Wait in the task that calls it, and not in another that has to be cancelled, too."""
    if timeout is not None and timeout <= 0:
        return await _original(fut, timeout)
    async with asyncio.timeout(timeout):
        return await fut


_original = asyncio.wait_for


def mend_wait_for() -> None:
    if sys.version_info < (3, 12):
        asyncio.wait_for = wait_for
