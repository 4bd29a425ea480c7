"""Reading something again and again, as long as somebody looks at it."""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui


def live(seconds: float, refresh: Callable[[], Awaitable[object]]) -> None:
    """Refresh every so often; a page in a tab that nobody sees asks for nothing."""
    timer = ui.timer(seconds, refresh, immediate=False)

    def heard(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        timer.active = bool(event.args)

    ui.on("adloom_visible", heard)
