"""What stands where something else would: an empty state, a problem, a remark."""

from collections.abc import Callable
from typing import Literal

from markupsafe import escape
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ProblemError
from adloom.console.components.attributes import attributed

Kind = Literal["good", "warn", "bad", "info"]
ICONS: dict[Kind, str] = {
    "good": "check_circle_outline",
    "warn": "warning_amber",
    "bad": "error_outline",
    "info": "info_outline",
}


def empty_state(  # noqa: PLR0913 - what empty states differ in
    icon: str,
    title: str,
    note: str,
    *,
    action: str = "",
    href: str = "",
    on_action: Callable[[], object] | None = None,
) -> None:
    """Say that there is nothing yet, and what to do about it."""
    with ui.element("div").classes("al-empty"):
        ui.icon(icon).props('aria-hidden="true"')
        ui.html(f"<h2>{escape(title)}</h2><p>{escape(note)}</p>", sanitize=False)
        if href:
            attributed(ui.button(action).props("unelevated"), href=href)
        elif on_action is not None:
            ui.button(action, on_click=on_action).props("unelevated")


def notice(text: str, *, kind: Kind = "info", title: str = "") -> None:
    """Make a remark in the page."""
    with ui.element("div").classes(f"al-notice {kind}").props('role="status"'):
        ui.icon(ICONS[kind]).props('aria-hidden="true"')
        head = f'<div class="strong">{escape(title)}</div>' if title else ""
        ui.html(f"{head}<div>{escape(text)}</div>", sanitize=False).classes("grow")


def problem_notice(error: ProblemError) -> None:
    """Say why something is not here, in the words of the API."""
    with ui.element("div").classes("stack"):
        notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        with ui.element("div").classes("row-of"):
            ui.button("Try again", on_click=ui.navigate.reload).props("outline")
            ui.link("To the overview", "/console")
