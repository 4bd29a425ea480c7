"""Parts of a page as links: each has an address of its own."""

from collections.abc import Mapping

from markupsafe import Markup
from nicegui import ui

from adloom.console.components.attributes import attributed


def tab_links(path: str, current: str, labels: Mapping[str, str], *, label: str) -> None:
    """Show the parts of a page, which are chosen by `?tab=`."""
    links = Markup("").join(
        Markup('<a href="{}?tab={}"{}>{}</a>').format(
            path, name, Markup(' aria-current="page"') if name == current else "", text
        )
        for name, text in labels.items()
    )
    attributed(ui.html(links, sanitize=False, tag="nav").classes("al-tabs"), aria_label=label)
    # On a phone the chosen one may be beyond the edge.
    ui.run_javascript("adloom.reveal('.al-tabs [aria-current]')")
