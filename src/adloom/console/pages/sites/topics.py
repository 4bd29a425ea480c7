"""What a site is about: its pages by category, as areas and as a list."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.categories import describe_category
from adloom.console.components.charts.treemap import Treemap, TreemapPart
from adloom.console.components.format import count, percent
from adloom.console.components.layout import card, div, empty_state, hint, html, meter

LISTED_MAX: Final = 7


def show_topics(site: Json, topics: Json) -> None:
    items = sorted(topics["items"], key=lambda one: -one["pages"])
    pages_tab = f"/console/sites/{site['id']}?tab=pages"
    note = f"{count(topics['classified'])} classified pages" if items else ""
    with card("What it is about", note=note):
        if not items:
            empty_state(
                "category",
                "Nothing is known about its pages yet",
                "Start a crawl, or give pages yourself in the tab “Pages”.",
                action="To its pages",
                href=pages_tab,
            )
            return
        parts = [
            TreemapPart(id=one["id"], path=one["path"] or [one["name"]], pages=one["pages"]) for one in items
        ]
        with div("grid-of side"):
            Treemap(
                parts,
                on_choose=lambda category: ui.navigate.to(f"{pages_tab}&category={category}"),
                description="Areas by the number of pages of each category",
            )
            html(_list_topics(items, topics["classified"], pages_tab))
        hint("Categories of the Content Taxonomy 3.1 by IAB Tech Lab, CC BY 3.0.")


def _list_topics(items: list[Json], classified: int, pages_tab: str) -> Markup:
    """List the largest categories: the areas can be clicked, and these links reached by keyboard."""
    rows = Markup("").join(
        Markup(
            '<li><a class="cut" href="{href}" title="{name}">{name}</a><b class="num">{share}</b>{bar}'
            '<span class="quiet small num">{pages}</span></li>'
        ).format(
            href=f"{pages_tab}&category={one['id']}",
            name=describe_category(one["id"]),
            share=percent(one["pages"] / max(1, classified), places=0),
            bar=meter(one["pages"] / max(1, classified)),
            pages=f"{count(one['pages'])} pages" if one["pages"] != 1 else "1 page",
        )
        for one in items[:LISTED_MAX]
    )
    return Markup('<ul class="al-shares">{}</ul>').format(rows)
