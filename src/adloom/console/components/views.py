"""Views of one page, each with an address of its own."""

from collections.abc import Sequence

from markupsafe import Markup
from nicegui import ui

from adloom.console.components.attributes import attributed


def view_links(views: Sequence[tuple[str, str]], *, current: str, label: str) -> None:
    """Show links to the views; each is its label and its address."""
    links = Markup("").join(
        Markup('<a href="{}"{}>{}</a>').format(
            href, Markup(' aria-current="page"') if href == current else "", text
        )
        for text, href in views
    )
    attributed(ui.html(links, sanitize=False, tag="nav").classes("al-tabs"), aria_label=label)
