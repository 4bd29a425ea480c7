"""Asking for several things at once, a few at a time."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

AT_ONCE_MAX: Final = 6  # Others want the database too.


async def all_of(asked: Sequence[Awaitable[T]]) -> list[T]:
    """Wait for all, and give them in their order; the first that fails fails all."""
    turn = asyncio.Semaphore(AT_ONCE_MAX)

    async def one(what: Awaitable[T]) -> T:
        async with turn:
            return await what

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(what)) for what in asked]
    except ExceptionGroup as failed:
        # Whoever asked knows what to do with an error of the API, not with several.
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]
