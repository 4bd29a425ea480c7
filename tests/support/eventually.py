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


async def measure_fastest(work: Callable[[], Awaitable[object]], *, seconds: float, tries: int = 10) -> float:
    """Do something until it takes less than some seconds, and return the shortest time: the machine may be busy."""
    clock, shortest = asyncio.get_running_loop().time, float("inf")
    for _ in range(tries):
        began_at = clock()
        await work()
        shortest = min(shortest, clock() - began_at)
        if shortest < seconds:
            break
    return shortest
