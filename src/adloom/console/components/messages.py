"""Short messages that disappear, with an undo where there is one, and questions before an action."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from markupsafe import escape
from nicegui import ui

from adloom.console.client import ProblemError

BAD_MILLISECONDS: Final = 8_000


def notify_success(message: str) -> None:
    ui.notify(message, type="positive", position="bottom-right", icon="check", multi_line=True)


def notify_error(message: str) -> None:
    ui.notify(
        message,
        type="negative",
        position="bottom-right",
        icon="error_outline",
        multi_line=True,
        timeout=BAD_MILLISECONDS,
        close_button=True,
    )


UNDO_MILLISECONDS: Final = 10_000
EVENT: Final = "adloom_undo"


def notify_undoable(message: str, on_undo: Callable[[], Awaitable[None]]) -> None:
    """Show what was done, with a button that undoes it while the message is visible."""
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


def confirm(
    title: str,
    consequence: str,
    *,
    action: str,
    on_confirm: Callable[[], Awaitable[None]],
    is_dangerous: bool = False,
) -> None:
    """Ask, and act when confirmed; if the API refuses, show its error and keep the question open."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html(f"<h2>{escape(title)}</h2>", sanitize=False)
        ui.label(consequence)

        async def go() -> None:
            button.disable()
            try:
                await on_confirm()
            except ProblemError as error:
                notify_error(error.message)
                button.enable()
                return
            dialog.close()

        with ui.element("div").classes("al-actions"):
            ui.button("Cancel", on_click=dialog.close).props("flat")
            button = ui.button(action, on_click=go).props("unelevated")
            if is_dangerous:
                button.props('color="negative"')
