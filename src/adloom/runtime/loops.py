"""Loops that run until they are told to stop."""

import asyncio
import contextlib


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Wait, but not longer than until told to stop."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
