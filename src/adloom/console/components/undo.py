"""A message with a way back."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from nicegui import ui

UNDO_MILLISECONDS: Final = 10_000
EVENT: Final = "adloom_undo"


def say_undoable(message: str, on_undo: Callable[[], Awaitable[None]]) -> None:
    """Say what was done, and undo it for whoever asks while the message is there."""
    options = {
        "message": message,
        "type": "info",
        "position": "bottom-right",
        "multiLine": True,
        "timeout": UNDO_MILLISECONDS,
    }
    name = f"{EVENT}_{ui.context.client.id}_{id(on_undo)}"
    ui.on(name, on_undo)
    action = f"{{label: {_quoted('Undo')}, color: 'white', handler: () => emitEvent({_quoted(name)})}}"
    ui.run_javascript(
        f"Quasar.Notify.create({{...{msgspec.json.encode(options).decode()}, actions: [{action}]}})"
    )


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
