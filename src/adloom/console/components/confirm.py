"""Asking before something is done that matters; the question says what follows from it."""

from collections.abc import Awaitable, Callable

from markupsafe import escape
from nicegui import ui

from adloom.console.client import ProblemError
from adloom.console.components.toast import say_bad


def confirm(
    title: str,
    consequence: str,
    *,
    action: str,
    on_confirm: Callable[[], Awaitable[None]],
    is_dangerous: bool = False,
) -> None:
    """Ask, and do it when it is confirmed; what the API refuses is said, and the question stays."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html(f"<h2>{escape(title)}</h2>", sanitize=False)
        ui.label(consequence)

        async def go() -> None:
            button.disable()
            try:
                await on_confirm()
            except ProblemError as error:
                say_bad(error.message)
                button.enable()
                return
            dialog.close()

        with ui.element("div").classes("al-actions"):
            ui.button("Cancel", on_click=dialog.close).props("flat")
            button = ui.button(action, on_click=go).props("unelevated")
            if is_dangerous:
                button.props('color="negative"')
