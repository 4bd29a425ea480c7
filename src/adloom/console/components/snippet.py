"""Lines to copy into a page."""

from markupsafe import escape
from nicegui import ui

from adloom.console.components.toast import say_good
from adloom.console.words import placements as words
from adloom.console.words import shell as shell_words


def snippet(text: str) -> None:
    """Show lines with a button that copies them."""

    def copy() -> None:
        ui.clipboard.write(text)
        say_good(words.COPIED)

    with ui.element("div").classes("al-snippet"):
        ui.html(f"<code>{escape(text)}</code>", sanitize=False, tag="pre")
        ui.button(icon="content_copy", on_click=copy).props(f'flat round aria-label="{shell_words.COPY}"')
