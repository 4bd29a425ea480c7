"""The pages of a noun of the catalog, made from a declaration: list, new, detail with tabs, settings and history.

SITES = ResourcePages(noun="site", columns=..., fields=..., tabs={"placements": Tab(...)}, ...).register()

A noun declares its columns, its form and its own tabs; deleting, undoing, saving and the history are the same for all.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final, Self
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import format_ago
from adloom.console.components.forms.fields import find_way_back
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_heading,
    add_link_button,
    add_notice,
    add_tab_links,
)
from adloom.console.components.messages import confirm, notify_success, notify_undoable
from adloom.console.components.table import Column, DataTable
from adloom.console.history import read_values_before, show_history
from adloom.console.page import PageVisit, register_page
from adloom.console.shell import ADMINS
from adloom.console.words.field_labels import label_field
from adloom.core.caller import Role

# Reads the item again and rebuilds its page.
Reload = Callable[[], Awaitable[None]]
Build = Callable[[PageVisit, Json, Reload], Awaitable[None]]
Fields = Callable[[PageVisit, Form, bool], Awaitable[None]]

VIEW_ONLY: Final = "Your role can read this, but not change it."
ON_OR_OFF: Final = ("On or off", {"true": "On", "false": "Off"})


class Tab(msgspec.Struct, frozen=True):
    """A tab of a detail page; without a builder it has the form. `fields` are those of the form that a builder shows."""

    label: str
    build: Build | None = None
    fields: AbstractSet[str] = frozenset()


def _add_no_actions(visit: PageVisit, item: Json, reload: Reload) -> None:
    del visit, item, reload


class ResourcePages(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a noun's pages. The API has the noun at /admin/{noun}s, the console at /console/{noun}s."""

    noun: str
    icon: str
    note: str
    empty_note: str
    roles: AbstractSet[Role]
    columns: Sequence[Column]
    last_column: tuple[str, str] | None = ("Changed", "updatedAt")  # A time.
    search: str
    fields: Fields
    name_field: str = "name"
    filters: Mapping[str, tuple[str, Mapping[str, str]]] = msgspec.field(
        default_factory=dict[str, tuple[str, Mapping[str, str]]]
    )
    # Adds what the API's list does not have, such as names of owners.
    complete: Callable[[PageVisit, list[Json]], Awaitable[None]] | None = None
    defaults: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    # Which fields of a new item the address gives, by the name that it has there.
    defaults_from_query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    is_compact: bool = False  # All fields in one narrow card.
    is_admins_only: bool = False  # Only admins create, change and delete.
    badge: Callable[[Json], Markup] = lambda _: Markup("")
    badge_at: Callable[[Json, datetime, str | None], Markup] | None = (
        None  # Instead, where it depends on the time, and on whose.
    )
    detail_note: Callable[[Json], str] = lambda _: ""
    links: Callable[[Json], None] = lambda _: None  # For every role.
    actions: Callable[[PageVisit, Json, Reload], None] = _add_no_actions  # For those who may write.
    list_actions: Callable[[PageVisit], None] = lambda _: None
    # Adds buttons for the items that are chosen in a list, for those who may write.
    picks: Callable[[PageVisit, Sequence[Json], Reload], None] | None = None
    owner: str = ""  # The noun of who owns an item: lists can be filtered by it.
    # Reads the choices of filters that are not known before, by their names.
    more_filters: Callable[[PageVisit], Awaitable[Mapping[str, tuple[str, Mapping[str, str]]]]] | None = None
    delete_note: str  # What deleting means, said before it is done.
    is_restorable: bool = True
    has_own_delete: bool = False  # The actions offer it.
    add: Callable[[Json], tuple[str, str]] | None = (
        None  # The label and address of the button that adds a part.
    )
    above_tabs: Build | None = None
    tabs: Mapping[str, Tab]
    tab_after_create: str = ""

    @property
    def title(self) -> str:
        return f"{self.noun.capitalize()}s"

    @property
    def home(self) -> str:
        return f"/console/{self.noun}s"

    @property
    def new(self) -> str:
        return f"{self.home}/new"

    def build_new_address(self, **given: str) -> str:
        """Return the address of the page for a new item that has these values, such as its owner."""
        query = {key: given[name] for name, key in self.defaults_from_query.items() if name in given}
        return f"{self.new}?{urlencode(query)}" if query else self.new

    @property
    def api(self) -> str:
        return f"/admin/{self.noun}s"

    @property
    def all_tabs(self) -> dict[str, Tab]:
        """The noun's own tabs, then the settings unless a tab has the form already, then the history."""
        has_form = any(tab.build is None for tab in self.tabs.values())
        settings = {} if has_form else {"settings": Tab("Settings")}
        return {**self.tabs, **settings, "history": Tab("History", self._show_history)}

    def register(self) -> Self:
        """Register the list, the page for a new item and the detail page."""
        register_page(self.home, title=self.title, roles=self.roles)(self.show_list)
        creators = ADMINS if self.is_admins_only else self.roles
        register_page(self.new, title=f"New {self.noun}", roles=creators)(self.show_new)
        register_page(f"{self.home}/{{{self.noun}_id}}", title=self.noun.capitalize(), roles=self.roles)(
            self.show_detail
        )
        return self

    def may_write(self, visit: PageVisit) -> bool:
        return visit.is_admin if self.is_admins_only else visit.may_write

    def make_table(self, visit: PageVisit, **narrowed: str) -> DataTable:
        """Make the table of all items, or of those of an owner."""

        async def read(query: Mapping[str, str]) -> Json:
            answer = await visit.api.get(self.api, **query, **narrowed)
            if self.complete is not None:
                await self.complete(visit, answer["items"])
            return answer

        table = DataTable(
            visit.query,
            self._list_columns(visit, narrowed),
            read,
            href=lambda row: f"{self.home}/{row['id']}",
            sort="-createdAt",
            empty=(self.icon, f"No {self.noun}s yet", self.empty_note),
            empty_action=(f"New {self.noun}", self.build_new_address(**narrowed))
            if self.may_write(visit)
            else None,
            caption=self.title,
        )
        if self.picks is not None and self.may_write(visit):
            add_buttons = self.picks
            table.pick(lambda rows, done: add_buttons(visit, rows, done))
        table.search(self.search)
        deleted = {"includeDeleted": ("Deleted", {"true": "Show them too"})} if self.is_restorable else {}
        for name, (label, options) in {**self.filters, **deleted}.items():
            table.filter(name, label, options)
        return table

    async def make_full_table(self, visit: PageVisit, **narrowed: str) -> DataTable:
        """Make the table with the filters whose choices are read first."""
        table = self.make_table(visit, **narrowed)
        if self.more_filters is not None:
            for name, (label, options) in (await self.more_filters(visit)).items():
                table.filter(name, label, options)
        if self.owner and visit.role in {Role.ADMIN, Role.VIEWER} and f"{self.owner}Id" not in narrowed:
            await table.filter_by(
                f"{self.owner}Id", self.owner.capitalize(), api=visit.api, path=f"/admin/{self.owner}s"
            )
        return table

    def _list_columns(self, visit: PageVisit, narrowed: Mapping[str, str]) -> list[Column]:
        columns = [column for column in self.columns if column.owner not in narrowed]
        if self.last_column is None:
            return columns
        label, field = self.last_column
        last = Column(label, lambda row: format_ago(row[field], now=visit.now), sort=field, is_wide_only=True)
        return [*columns, last]

    def make_tab(self, owner: str) -> Tab:
        """Make a tab of an owner's detail page that lists its items; `owner` is the field of an item with its id."""

        async def build(visit: PageVisit, item: Json, _: Reload) -> None:
            await (await self.make_full_table(visit, **{owner: item["id"]})).show()

        return Tab(f"Its {self.noun}s", build)

    async def show_list(self, visit: PageVisit) -> None:
        with add_heading(self.title, note=self.note):
            self.list_actions(visit)
            if self.may_write(visit):
                add_link_button(f"New {self.noun}", self.new, icon="add", look="unelevated")
        await (await self.make_full_table(visit)).show()

    async def show_new(self, visit: PageVisit) -> None:
        add_heading(f"New {self.noun}", crumbs=[(self.title, self.home)])
        if not self.may_write(visit):
            add_notice(VIEW_ONLY)
            return
        given = {
            name: visit.query[key] for name, key in self.defaults_from_query.items() if key in visit.query
        }
        own = {"timezone": visit.zone} if visit.zone and "timezone" in self.defaults else {}
        form = Form({**self.defaults, **own, **given}, is_focused=True)
        await self._add_fields(visit, form, is_new=True)

        async def save() -> None:
            made = await visit.api.post(self.api, form.create_body())
            tab = f"?tab={self.tab_after_create}" if self.tab_after_create else ""
            back = find_way_back(visit.query, made["id"])
            ui.navigate.to(back or f"{self.home}/{made['id']}{tab}")

        form.add_buttons(
            "Create", save, on_cancel=lambda: ui.navigate.to(find_way_back(visit.query) or self.home)
        )

    async def show_detail(self, visit: PageVisit) -> None:
        @ui.refreshable
        async def show_body() -> None:
            item_id = visit.parts[f"{self.noun}_id"]
            item = await visit.api.get(f"{self.api}/{item_id}")
            await self._show_item(visit, item, reload)

        async def reload() -> None:
            await show_body.refresh()

        await show_body()

    async def _show_item(self, visit: PageVisit, item: Json, reload: Reload) -> None:
        is_deleted = bool(item.get("deletedAt"))
        with add_heading(
            item[self.name_field],
            note=self.detail_note(item),
            crumbs=[(self.title, self.home)],
            badge=self.badge(item) if self.badge_at is None else self.badge_at(item, visit.now, visit.zone),
        ):
            self.links(item)
            if visit.may_write and not is_deleted:
                self.actions(visit, item, reload)
                if self.may_write(visit) and not self.has_own_delete:
                    ui.button("Delete", on_click=lambda: self.ask_delete(visit, item, reload)).props(
                        "outline"
                    )
                if self.add is not None:
                    label, href = self.add(item)
                    add_link_button(label, href, icon="add", look="unelevated")
        if is_deleted:
            self._show_deleted(visit, item, reload)
        if self.above_tabs is not None:
            await self.above_tabs(visit, item, reload)
        tabs = self.all_tabs
        asked = visit.query.get("tab", "")
        current = asked if asked in tabs else next(iter(tabs))
        labels = {name: tab.label for name, tab in tabs.items()}
        add_tab_links(visit.path, current, labels, label="Parts of this page")
        await (tabs[current].build or self._show_form)(visit, item, reload)

    async def _show_form(self, visit: PageVisit, item: Json, reload: Reload) -> None:
        may_write = self.may_write(visit)
        if not may_write:
            add_notice(VIEW_ONLY)
        before = await read_values_before(visit, self.noun, item) if may_write else {}
        told = add_div("stack")
        form = Form(item, suggested=before)
        await self._add_fields(visit, form, is_new=False)
        if before:
            notify_put_back(told, before, form.names)
        if may_write and not item.get("deletedAt"):
            form.add_buttons("Save", lambda: save_changes(visit, f"{self.api}/{item['id']}", form, reload))

    async def _add_fields(self, visit: PageVisit, form: Form, *, is_new: bool) -> None:
        if not self.is_compact:
            await self.fields(visit, form, is_new)
            return
        with add_card(classes="al-narrow"), add_div("stack tight"):
            await self.fields(visit, form, is_new)

    async def _show_history(self, visit: PageVisit, item: Json, _: Reload) -> None:
        def find_form(changed: AbstractSet[str]) -> str:
            special = (name for name, tab in self.all_tabs.items() if tab.fields and changed <= tab.fields)
            form = next(special, None) or next(
                name for name, tab in self.all_tabs.items() if tab.build is None
            )
            return f"{visit.path}?tab={form}"

        may_put_back = self.may_write(visit) and not item.get("deletedAt")
        await show_history(visit, self.noun, item["id"], find_form=find_form if may_put_back else None)

    def ask_delete(self, visit: PageVisit, item: Json, reload: Reload) -> None:
        """Say what deleting means, and do it when confirmed; where it can be undone, offer that."""
        name = item[self.name_field]

        async def delete() -> None:
            await visit.api.delete(f"{self.api}/{item['id']}")
            if not self.is_restorable:
                ui.navigate.to(self.home)
                return
            notify_undoable(f"“{name}” is deleted.", lambda: self._restore(visit, item, reload))
            await reload()

        confirm(
            f"Delete “{name}”?" if self.is_restorable else f"Delete “{name}” for good?",
            self.delete_note,
            action="Delete",
            on_confirm=delete,
            is_dangerous=True,
        )

    async def _restore(self, visit: PageVisit, item: Json, reload: Reload) -> None:
        await visit.api.post(f"{self.api}/{item['id']}/restore")
        notify_success(f"“{item[self.name_field]}” is back.")
        await reload()

    def _show_deleted(self, visit: PageVisit, item: Json, reload: Reload) -> None:
        when = format_ago(item["deletedAt"], now=visit.now)
        text = Markup("It is not shown to anybody, and it is not in the lists. It was deleted {}.").format(
            when
        )
        with add_notice(text, kind="warn", title=f"This {self.noun} is deleted", icon="delete_outline"):
            if visit.may_write:
                ui.button("Restore", on_click=lambda: self._restore(visit, item, reload)).props("outline")


def notify_put_back(place: ui.element, before: Mapping[str, object], names: AbstractSet[str]) -> None:
    """Say which fields of a form have their old values, and which have to be changed elsewhere."""
    labels = ", ".join(f"“{label_field(name)}”" for name in before if name in names)
    others = ", ".join(f"“{label_field(name)}”" for name in before if name not in names)
    with place:
        if labels:
            add_notice(
                f"{labels}: as before the change that you chose in the history. Look at it, then press Save: "
                "nothing is written before.",
                title="Old values are filled in",
            )
        if others:
            add_notice(f"{others}: this is not changed here, but on another tab or by a button.", kind="warn")


def is_over(changes: Json, now: datetime) -> bool:
    """Whether changes end a campaign at once, and for good."""
    return bool(ends_at := changes.get("endsAt")) and datetime.fromisoformat(ends_at) <= now


async def save_changes(visit: PageVisit, address: str, form: Form, reload: Reload) -> None:
    """Send what was changed in a form, and say whether anything was; ask before that ends a campaign for good."""
    changes = form.patch_body()
    if is_over(changes, visit.now):
        confirm(
            "End it for good?",
            "Its end is in the past. It is over at once, and cannot run again: copy it to go on.",
            action="End it",
            on_confirm=lambda: visit.api.patch(address, changes),
            success="Saved.",
            on_success=reload,
            is_dangerous=True,
        )
        return
    if changes:
        await visit.api.patch(address, changes)
    notify_success("Saved." if changes else strings.NOTHING_CHANGED)
    await reload()


def switch_button(
    name: str, switch: Callable[[], Awaitable[None]], *, is_on: bool, off_note: str, on_note: str
) -> None:
    """Show the button that switches an item on or off, after saying what that means."""
    action = "Switch off" if is_on else "Switch on"

    def ask() -> None:
        confirm(
            f"Switch “{name}” {'off' if is_on else 'on'}?",
            off_note if is_on else on_note,
            action=action,
            on_confirm=switch,
            success=f"“{name}” is {'off' if is_on else 'on'}.",
        )

    ui.button(action, on_click=ask).props("outline")
