"""Refreshing a page while it is open."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import ui

# Rest ten times as long as a refresh took, so that open pages do not keep the database busy.
REST: Final = 10


def refresh_every(seconds: float, refresh: Callable[[], Awaitable[object]]) -> None:
    """Refresh regularly, less often if a refresh is slow, and not while the tab is hidden."""

    async def refresh_and_rest() -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await refresh()
        finally:
            # The interval runs from start to start.
            timer.interval = max(seconds, (1 + REST) * (clock() - began))

    timer = ui.timer(seconds, refresh_and_rest, immediate=False)

    def on_visibility(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        timer.active = bool(event.args)

    ui.on("adloom_visible", on_visibility)
