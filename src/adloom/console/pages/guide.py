"""The guide, chapter by chapter."""

from markupsafe import Markup
from nicegui import ui

from adloom.console.components.layout import add_div, add_empty_state, add_html
from adloom.console.guide import FRONT, GUIDE, read_chapter
from adloom.console.page import NOT_FOUND, PageVisit, register_page


@register_page(GUIDE, title="Guide")
async def show_front(visit: PageVisit) -> None:
    del visit
    _show(FRONT)


@register_page(f"{GUIDE}/{{chapter}}", title="Guide")
async def show_chapter(visit: PageVisit) -> None:
    _show(visit.parts["chapter"])


def _show(name: str) -> None:
    chapter = read_chapter(name)
    if chapter is None:
        ui.context.client.status_code = NOT_FOUND
        add_empty_state(
            "menu_book",
            "The guide has no such chapter",
            "It may have another name now.",
            action="To the guide",
            href=GUIDE,
        )
        return
    if name != FRONT:
        with add_div("al-crumbs"):
            add_html(Markup('<a href="{}">The guide</a> <span>/</span>').format(GUIDE))
    add_html(chapter.html, tag="article").classes("al-guide")
    # The browser looked for the place before it was there.
    ui.run_javascript("document.getElementById(location.hash.slice(1))?.scrollIntoView()")
