"""Short messages that go away by themselves."""

from typing import Final

from nicegui import ui

BAD_MILLISECONDS: Final = 8_000


def say_good(message: str) -> None:
    """Say that something has worked."""
    ui.notify(message, type="positive", position="bottom-right", icon="check", multi_line=True)


def say_bad(message: str) -> None:
    """Say that something has not worked, for long enough to be read."""
    ui.notify(
        message,
        type="negative",
        position="bottom-right",
        icon="error_outline",
        multi_line=True,
        timeout=BAD_MILLISECONDS,
        close_button=True,
    )
