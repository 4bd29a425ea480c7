"""The palette of Ctrl-K: finds pages and things of the catalog by name, from anywhere."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec
from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from adloom.console.client import NAME_FIELDS, ApiClient, Json, ProblemError, fetch_all
from adloom.console.components.layout import add_div, set_attributes
from adloom.core.caller import Role

THINGS_MAX: Final = 5  # Of each noun.
PAGES_MAX: Final = 8
LETTERS_MIN: Final = 2  # One letter finds nearly everything.
# What a role cannot list.
HIDDEN_NOUNS: Final[Mapping[Role, Collection[str]]] = {
    Role.PUBLISHER: ("campaign", "banner", "advertiser"),
    Role.ADVERTISER: ("placement", "site", "publisher"),
}
SAVED_REPORTS: Final = "/admin/saved-reports"


class Hit(msgspec.Struct, frozen=True):
    """Something to go to."""

    label: str
    kind: str
    path: str
    icon: str


def find_pages(pages: Sequence[Hit], text: str) -> list[Hit]:
    """Return the pages whose name has a text, those that begin with it first."""
    wanted = text.strip().casefold()
    found = [one for one in pages if wanted in one.label.casefold()]
    return sorted(found, key=lambda one: not one.label.casefold().startswith(wanted))[:PAGES_MAX]


async def find_things(api: ApiClient, role: Role, text: str) -> list[Hit]:
    """Return the things of the catalog, and the own saved reports, whose name has a text."""
    if len(text.strip()) < LETTERS_MIN:
        return []

    async def search(path: str) -> list[Json]:
        try:
            return await api.get_items(path, search=text.strip(), pageSize=THINGS_MAX)
        except ProblemError:
            return []

    async def ask(noun: str) -> list[Hit]:
        found = await search(f"/admin/{noun}s")
        field = NAME_FIELDS[noun]
        return [Hit(one[field], noun, f"/console/{noun}s/{one['id']}", "arrow_forward") for one in found]

    async def ask_reports() -> list[Hit]:
        found = await search(SAVED_REPORTS)
        return [
            Hit(one["name"], "saved report", f"/console/reports?report={one['id']}", "bar_chart")
            for one in found
        ]

    asked = [ask(noun) for noun in NAME_FIELDS if noun not in HIDDEN_NOUNS.get(role, ())]
    asked.append(ask_reports())
    return [hit for hits in await fetch_all(asked) for hit in hits]


class CommandPalette:
    """The dialog; it is empty until it is opened."""

    def __init__(self, api: ApiClient, role: Role, pages: Sequence[Hit]) -> None:
        self._api = api
        self._role = role
        self._pages = pages
        self._hits: list[Hit] = []
        self._asked = 0
        with ui.dialog().props('position="top"') as self._dialog, ui.card().classes("al-palette"):
            set_attributes(self._dialog, aria_label="Go to")
            self._field = ui.input(placeholder="Go to a page, a campaign, a banner …").props(
                'outlined dense autofocus data-field="palette" aria-label="Go to"'
            )
            self._field.classes("full").on_value_change(self._on_text).on("keydown.enter", self._go_to_first)
            self._list = ui.element("nav").classes("al-palette-list full").props('aria-label="Found"')
        ui.on("adloom_palette", self.open)

    def open(self) -> None:
        self._field.value = ""
        self._show(find_pages(self._pages, ""))
        self._dialog.open()

    async def _on_text(self, event: ValueChangeEventArguments[str | None]) -> None:
        self._asked += 1
        asked, text = self._asked, event.value or ""
        pages = find_pages(self._pages, text)
        self._show(pages)
        things = await find_things(self._api, self._role, text)
        if asked == self._asked:  # Else somebody has typed on.
            self._show([*pages, *things])

    def _show(self, hits: list[Hit]) -> None:
        self._hits = hits
        self._list.clear()
        with self._list:
            for hit in hits:
                with set_attributes(ui.element("a").classes("al-palette-hit"), href=hit.path):
                    ui.icon(hit.icon).props('aria-hidden="true"')
                    ui.label(hit.label)
                    ui.label(hit.kind).classes("quiet small")
            if not hits:
                with add_div("quiet"):
                    ui.label("Nothing has this name.")

    def _go_to_first(self) -> None:
        if self._hits:
            ui.navigate.to(self._hits[0].path)
