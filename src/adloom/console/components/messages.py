"""What a page says and asks: downloads, short messages that disappear, with an undo where there is one, and questions before an action."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.client import ProblemError

# Spreadsheets read a file without it in the characters of their own country.
BYTE_ORDER_MARK: Final = "\ufeff"
ERROR_MILLISECONDS: Final = 8_000
UNDO_MILLISECONDS: Final = 10_000


def notify_success(message: str) -> None:
    ui.notify(message, type="positive", position="bottom-right", icon="check", multi_line=True)


def notify_error(message: str) -> None:
    ui.notify(
        message,
        type="negative",
        position="bottom-right",
        icon="error_outline",
        multi_line=True,
        timeout=ERROR_MILLISECONDS,
        close_button=True,
    )


def download_sheet(text: str, name: str) -> None:
    """Let the browser save CSV, so that spreadsheets read its characters, and say so."""
    ui.download.content(f"{BYTE_ORDER_MARK}{text}", name, "text/csv")
    notify_success("The sheet is downloaded.")


def notify_undoable(message: str, on_undo: Callable[[], Awaitable[None]]) -> None:
    """Show what was done, with a button that undoes it while the message is visible."""
    name = f"adloom_undo_{ui.context.client.id}_{id(on_undo)}"
    ui.on(name, on_undo)
    options = {"message": message, "type": "info", "position": "bottom-right", "multiLine": True}
    ui.run_javascript(
        f"Quasar.Notify.create({{...{msgspec.json.encode(options).decode()}, timeout: {UNDO_MILLISECONDS}, "
        f"actions: [{{label: 'Undo', color: 'white', handler: () => emitEvent('{name}')}}]}})"
    )


@contextmanager
def open_dialog(title: str) -> Generator[ui.dialog]:
    with ui.dialog(value=True) as dialog, ui.card():
        dialog.props["aria-label"] = title
        ui.html(Markup("<h2>{}</h2>").format(title), sanitize=False)
        yield dialog


def show_stale(message: str) -> None:
    with open_dialog("Somebody else changed this first") as dialog:
        ui.label(message)
        with ui.element("div").classes("al-actions"):
            ui.button("Stay here", on_click=dialog.close).props("flat")
            ui.button("Load it again", on_click=ui.navigate.reload).props("unelevated")


def confirm(  # noqa: PLR0913 - what questions differ in
    title: str,
    consequence: str,
    *,
    action: str,
    on_confirm: Callable[[], Awaitable[object]],
    success: str = "",
    on_success: Callable[[], Awaitable[object] | None] = lambda: None,
    is_dangerous: bool = False,
    before: Callable[[], object] | None = None,
) -> None:
    """Ask, and act when confirmed; if the API refuses, show its error and keep the question open.

    `before` builds what must be read before the consequence; afterwards `success` is shown, and `on_success` is called.
    """
    with open_dialog(title) as dialog:
        if before is not None:
            before()
        ui.label(consequence)

        async def go() -> None:
            button.disable()
            try:
                await on_confirm()
                if success:
                    notify_success(success)
                if (shown_anew := on_success()) is not None:
                    await shown_anew
            except ProblemError as error:
                notify_error(error.message)
                button.enable()
                return
            dialog.close()

        with ui.element("div").classes("al-actions"):
            cancel = ui.button("Cancel", on_click=dialog.close).props("flat")
            button = ui.button(action, on_click=go).props("unelevated")
            if is_dangerous:
                button.props('color="negative"')
            # Enter answers the question, but never with what is hard to undo.
            (cancel if is_dangerous else button).props("data-autofocus")
