"""Loops that run until they are told to stop, and wait meanwhile."""

import asyncio
import contextlib


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Wait, but not longer than until an event, such as being told to stop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()


async def pass_on(stop: asyncio.Event, event: asyncio.Event) -> None:
    """Set an event that a loop waits for, as soon as the loop is told to stop."""
    await stop.wait()
    event.set()
