"""The frame around every page: the header, the navigation of the pages a role can use, the account menu, and the palette of Ctrl-K, which finds pages and things of the catalog by name."""

from collections.abc import Collection, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final
from uuid import UUID

import msgspec
from markupsafe import Markup, escape
from msgspec.structs import replace
from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from adloom.console.client import NAME_FIELDS, ApiClient, Json, ProblemError, fetch_all
from adloom.console.components.format import get_shown_currency
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_div, add_hint, add_html, add_menu_entry, set_attributes
from adloom.console.guide import GUIDE, find_help
from adloom.console.sign_in.gate import LOG_IN
from adloom.console.theme import find_asset_address
from adloom.core.caller import Role
from adloom.identity.model import PASSWORD_LENGTH_MIN

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


EVERYBODY: Final = frozenset(Role)
STAFF: Final = frozenset({Role.ADMIN, Role.VIEWER})
ADVERTISER_SIDE: Final = STAFF | {Role.ADVERTISER}
PUBLISHER_SIDE: Final = STAFF | {Role.PUBLISHER}
ADMINS: Final = frozenset({Role.ADMIN})
PAGES_OF: Final = {"campaign": ADVERTISER_SIDE, "banner": ADVERTISER_SIDE, "placement": PUBLISHER_SIDE}
OWN: Final = "My record"
# A form, so that the browser itself sends the request with the cookie.
_LOG_OUT_FORM = (
    '<form method="post" action="/console/logout"><button type="submit" role="menuitem" class="q-item full" '
    'style="all: unset; cursor: pointer; display: block; padding: .5rem .75rem .75rem; box-sizing: border-box">'
    "Log out</button></form>"
)


def link_thing(kind: str, thing_id: str, name: str, role: Role) -> Markup:
    """Return the name of a campaign, banner or placement, as a link if the role may open its page."""
    if role not in PAGES_OF[kind]:
        return escape(name)
    return Markup('<a href="/console/{}s/{}">{}</a>').format(kind, thing_id, name)


class NavigationEntry(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    path: str
    label: str
    icon: str
    roles: AbstractSet[Role]
    group: str = ""


ENTRIES: Final = (
    NavigationEntry("/console", "Overview", "insights", EVERYBODY),
    NavigationEntry("/console/campaigns", "Campaigns", "campaign", ADVERTISER_SIDE, "Catalog"),
    NavigationEntry("/console/banners", "Banners", "image", ADVERTISER_SIDE, "Catalog"),
    NavigationEntry("/console/placements", "Placements", "view_quilt", PUBLISHER_SIDE, "Catalog"),
    NavigationEntry("/console/requests", "Requests", "inbox", PUBLISHER_SIDE, "Catalog"),
    NavigationEntry("/console/approvals", "Approvals", "fact_check", PUBLISHER_SIDE, "Catalog"),
    NavigationEntry("/console/sites", "Sites", "language", PUBLISHER_SIDE, "Catalog"),
    NavigationEntry("/console/advertisers", "Advertisers", "storefront", STAFF, "Catalog"),
    NavigationEntry("/console/publishers", "Publishers", "groups", STAFF, "Catalog"),
    # An account sees nobody but itself there.
    NavigationEntry("/console/advertisers", OWN, "storefront", {Role.ADVERTISER}, "Catalog"),
    NavigationEntry("/console/publishers", OWN, "groups", {Role.PUBLISHER}, "Catalog"),
    NavigationEntry("/console/first-campaign", "My first campaign", "auto_awesome", ADMINS, "Catalog"),
    NavigationEntry("/console/why", "Why?", "help_outline", EVERYBODY, "Insight"),
    NavigationEntry("/console/auctions", "Auctions", "gavel", ADVERTISER_SIDE, "Insight"),
    NavigationEntry("/console/budgets", "Budgets", "account_balance_wallet", ADVERTISER_SIDE, "Insight"),
    NavigationEntry("/console/reports", "Reports", "bar_chart", EVERYBODY, "Insight"),
    NavigationEntry("/console/reports/ads", "Stats sync", "sync", ADVERTISER_SIDE, "Insight"),
    NavigationEntry("/console/history", "History", "history", STAFF, "Operation"),
    NavigationEntry("/console/jobs", "Jobs", "work_history", STAFF, "Operation"),
    NavigationEntry("/console/system", "System", "dns", ADMINS, "Operation"),
    NavigationEntry(GUIDE, "Guide", "menu_book", EVERYBODY, "Operation"),
)


def list_entries(
    role: Role, *, registered: AbstractSet[str], account_id: UUID | None = None
) -> list[NavigationEntry]:
    """Return what the navigation of a role has; the record of an account is a page of its own, not a list."""
    return [
        replace(section, path=f"{section.path}/{account_id}")
        if section.label == OWN and account_id
        else section
        for section in ENTRIES
        if role in section.roles and section.path in registered
    ]


@contextmanager
def show_shell(  # noqa: PLR0913 - what the frame shows
    *, path: str, tab: str, role: Role, email: str, entries: Sequence[NavigationEntry], api: ApiClient
) -> Generator[None]:
    # Without a value NiceGUI would ask the browser whether it is open, which fails on a slow network.
    drawer = ui.left_drawer(value=False, bordered=True).props("show-if-above breakpoint=900 width=232")
    with drawer:
        _show_navigation(path, entries)
    currency = get_shown_currency()
    header = ui.header().classes("al-header")
    with set_attributes(header, data_symbol=currency.symbol, data_places=str(currency.places)):
        add_html('<a class="skip" href="#content">Skip to the content</a>')
        _add_button("menu", "Open the navigation").classes("al-menu").on_click(drawer.toggle)
        with ui.element("a").props('href="/console"').classes("al-brand"):
            set_attributes(ui.element("img"), src=find_asset_address("mark.svg"), alt="")
            ui.label("Adloom")
        add_div("grow")
        palette = CommandPalette(
            api,
            role,
            [Hit(one.label, "page", one.path, one.icon) for one in entries],
        )
        _add_button("search", "Go to a page or a thing (Ctrl-K)").on_click(palette.open)
        # In another tab: who reads help has something half done here.
        set_attributes(
            _add_button("menu_book", "The guide about this page"), href=find_help(path, tab), target="_blank"
        )
        _add_button("contrast", "Switch between light and dark").on(
            "click", js_handler="() => adloom.switchTheme()"
        )
        _show_account_menu(email, role, api)
    # NiceGUI's own frame of the page is its <main>.
    with add_div("al-main").props('id="content" tabindex="-1"'):
        yield


def _add_button(icon: str, label: str) -> ui.button:
    return set_attributes(ui.button(icon=icon).props('flat round color=""'), aria_label=label, title=label)


def _show_navigation(path: str, sections: Sequence[NavigationEntry]) -> None:
    group = ""
    with ui.element("nav").classes("al-nav").props('aria-label="Pages"'):
        # The longest matching path is the current entry.
        current = max((one.path for one in sections if _is_under(path, one.path)), key=len, default="")
        for section in sections:
            if section.group != group:
                group = section.group
                ui.label(group).classes("al-nav-group")
            link = set_attributes(ui.element("a").classes("al-nav-link"), href=section.path)
            if section.path == current:
                link.props('aria-current="page"')
            with link:
                ui.icon(section.icon).props('aria-hidden="true"')
                ui.label(section.label)


def _is_under(path: str, section: str) -> bool:
    return path == section or (section != "/console" and path.startswith(f"{section}/"))


def _show_account_menu(email: str, role: Role, api: ApiClient) -> None:
    with _add_button("account_circle", "Your account"), ui.menu(), add_div("stack tight"):
        with ui.element("div").style("padding: .75rem .75rem .25rem"):
            ui.label(email).classes("strong")
            add_hint(role.value)
        add_menu_entry("Time zone and second factor", lambda: ui.navigate.to("/console/account"))
        add_menu_entry("Change password", lambda: _change_password(api))
        add_html(_LOG_OUT_FORM)


def _change_password(api: ApiClient) -> None:
    async def save(form: Form) -> None:
        given = form.read_values()
        del given["again"]
        await api.put("/admin/accounts/me/password", given)
        # This ended all sessions, including this one.
        ui.navigate.to(f"{LOG_IN}?changed")

    with open_form_dialog("Change password", "Save", save) as form:
        form.add_password("currentPassword", "Current password", autocomplete="current-password")
        new = form.add_password("newPassword", "New password", check=checks.check_password)
        new.props["hint"] = f"At least {PASSWORD_LENGTH_MIN} characters."
        again = form.add_password("again", "New password, again", check=checks.check_same(lambda: new.value))
        new.on_value_change(lambda: again.validate() if again.value else None)
