"""Refreshing a page while it is open."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import ui

# So many times as long as a refresh took it rests: open pages do not keep counting what is slow to count.
REST: Final = 10


def refresh_every(seconds: float, refresh: Callable[[], Awaitable[object]]) -> None:
    """Refresh regularly, less often if a refresh is slow, and not while the tab is hidden."""

    async def refreshed() -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await refresh()
        finally:
            # From one beginning to the next.
            timer.interval = max(seconds, (1 + REST) * (clock() - began))

    timer = ui.timer(seconds, refreshed, immediate=False)

    def heard(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        timer.active = bool(event.args)

    ui.on("adloom_visible", heard)
