"""Wait until a condition is true, as long as the specification allows."""

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(is_so: Callable[[], bool], *, seconds: float, every: float = 0.005) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(every)


async def becomes(is_so: Callable[[], Awaitable[bool]], *, seconds: float, every: float = 0.02) -> None:
    """The same, of something that must be asked for."""
    async with asyncio.timeout(seconds):
        while not await is_so():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(every)
