"""Wait until a condition is true, as long as the specification allows."""

import asyncio
from collections.abc import Callable


async def eventually(is_so: Callable[[], bool], *, seconds: float, every: float = 0.005) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(every)
