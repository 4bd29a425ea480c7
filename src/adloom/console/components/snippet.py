"""Lines to copy into a page."""

from markupsafe import escape
from nicegui import ui

from adloom.console.components.toast import say_good


def snippet(text: str) -> None:
    """Show lines with a button that copies them."""

    def copy() -> None:
        ui.clipboard.write(text)
        say_good("Copied.")

    with ui.element("div").classes("al-snippet"):
        ui.html(f"<code>{escape(text)}</code>", sanitize=False, tag="pre")
        ui.button(icon="content_copy", on_click=copy).props('flat round aria-label="Copy"')
