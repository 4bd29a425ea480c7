"""A table that the database pages, sorts and filters; its state is in the address and survives a reload.

async def read(query: Mapping[str, str]) -> Json:
    return await visit.api.get("/admin/campaigns", **query)

table = DataTable(visit.query, columns, read, href=lambda row: f"/console/campaigns/{row['id']}")
table.search("Search by name")
table.filter("status", "Status", {"active": "Active", …})
await table.show()
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.client import ApiClient, Json
from adloom.console.components.format import format_count
from adloom.console.components.forms.fields import DAY_WAIT_MILLISECONDS, add_picker, name_row
from adloom.console.components.layout import add_div, add_empty_state, add_html, set_attributes

NOTHING_FOUND_NOTE: Final = "Change the search or the filters."

PAGE_SIZE: Final = 25
SEARCH_WAIT_MILLISECONDS: Final = 250

Row = Json
Read = Callable[[Mapping[str, str]], Awaitable[Json]]
# Adds buttons for chosen rows; it is given how to choose none any more, and to read all again.
Picks = Callable[[Sequence[Row], Callable[[], Awaitable[None]]], None]
# Sends clicks on elements with `data-act` to the server, with their `data-value`.
CLICK_HANDLER: Final = """(event) => {
  const target = event.target.closest("[data-act]");
  if (target && !target.disabled) { event.preventDefault(); emit(target.dataset.act, target.dataset.value ?? ""); }
}"""
# Sends changes of the boxes that choose rows.
PICK_HANDLER: Final = """(event) => {
  const box = event.target.closest("[data-pick]");
  if (box) emit(box.dataset.pick, box.checked);
}"""
EVERY_ROW: Final = "*"


class Column(msgspec.Struct, frozen=True):
    """A column: a field or a function of a row, and the field of the API by which it sorts."""

    label: str
    cell: str | Callable[[Row], str | Markup]
    sort: str = ""
    is_number: bool = False
    is_wide_only: bool = False  # Left out on phones.
    more_sorts: tuple[tuple[str, str], ...] = ()  # Of what else the cells show: label, and field of the API.
    owner: str = ""  # Left out where the table is narrowed to one owner by this field.

    @property
    def rises_first(self) -> bool:
        """Whether a first click sorts from A to Z: names do, while of figures and times the largest matter most."""
        return not self.is_number and not self.sort.endswith("At")

    def show(self, row: Row) -> str | Markup:
        return row[self.cell] if isinstance(self.cell, str) else self.cell(row)


def make_number_column(
    label: str,
    field: str,
    write: Callable[[Any], str] = format_count,
    *,
    is_sorted: bool = False,
    is_wide_only: bool = False,
) -> Column:
    """Make a column of the figures that a field has."""
    sort = field if is_sorted else ""
    return Column(label, lambda row: write(row[field]), sort=sort, is_number=True, is_wide_only=is_wide_only)


def build_row_button(name: str, value: str, label: str) -> Markup:
    """Make a button in a row; `DataTable(on_action={name: …})` handles its click."""
    return Markup('<button class="act" data-act="{}" data-value="{}">{}</button>').format(name, value, label)


class DataTable:
    """A table. Add the search and the filters, then `show` it."""

    def __init__(  # noqa: PLR0913 - what tables differ in
        self,
        address: Mapping[str, str],
        columns: Sequence[Column],
        read: Read,
        *,
        href: Callable[[Row], str] | None = None,
        on_action: Mapping[str, Callable[[str], Awaitable[None]]] | None = None,
        sort: str = "",
        empty: tuple[str, str, str] = ("inbox", "Nothing matches", NOTHING_FOUND_NOTE),
        empty_action: tuple[str, str] | None = None,
        caption: str = "",
        total: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self._address = address
        self._columns = columns
        self._read = read
        self._href = href
        self._actions = dict(on_action or {})
        self._sort_default = sort
        self._empty = empty
        self._empty_action = empty_action
        self._caption = caption
        self._total = total  # The cells of a last line.
        self._state: dict[str, str] = {name: address[name] for name in ("page", "sort") if name in address}
        self._filters: dict[str, Any] = {}
        self._rows: list[Row] = []
        self._picked: dict[str, Row] = {}
        self._picks: Picks | None = None
        self._bar = add_div("al-bar")
        self._chosen = add_div("al-chosen")
        self._chosen.set_visibility(False)
        with add_div("al-card flush"):
            self._body = add_html("").on("click", self._on_click, js_handler=CLICK_HANDLER)
            self._body.on("change", self._on_pick, js_handler=PICK_HANDLER)
            self._nothing = ui.element("div")

    def search(self, label: str = "Search") -> None:
        with self._bar:
            field = ui.input(label, value=self._address.get("search", ""))
            field.props(f'outlined dense clearable debounce={SEARCH_WAIT_MILLISECONDS} type="search"')
            field.classes("al-search").on_value_change(self._on_change)
        self._filters["search"] = field

    def filter(self, name: str, label: str, options: Mapping[str, str]) -> None:
        with self._bar:
            given = self._address.get(name)
            field = ui.select(
                dict(options), label=label, value=given if given in options else None, clearable=True
            )
            field.props("outlined dense options-dense").on_value_change(self._on_change)
        self._filters[name] = field

    def filter_by_day(self, name: str, label: str) -> None:
        """Add a filter by a day; `read` is given it as it is in the address."""
        with self._bar:
            field = ui.input(label, value=self._address.get(name, ""))
            set_attributes(field, data_field=name).props(
                f'outlined dense stack-label clearable type="date" debounce="{DAY_WAIT_MILLISECONDS}"'
            )
            field.on_value_change(self._on_change)
        self._filters[name] = field

    async def filter_by(self, name: str, label: str, *, api: ApiClient, path: str, key: str = "id") -> None:
        """Add a filter by an item of the API; `key` is the field that is sent, and shown too unless it is the id."""
        is_named = key == "id"
        with self._bar:
            field = await add_picker(
                label,
                self._address.get(name),
                api=api,
                path=path,
                is_clearable=True,
                key=key,
                sort="name" if is_named else key,
                shown=name_row if is_named else lambda row: row[key],
            )
            set_attributes(field, data_field=name).props("outlined dense options-dense")
            field.on_value_change(self._on_change)
        self._filters[name] = field

    def pick(self, picks: Picks) -> None:
        """Let rows be chosen; `picks` adds the buttons for those that are."""
        self._picks = picks

    async def show(self) -> None:
        query = self._build_query()
        answer = await self._read({"page": "1", "pageSize": str(PAGE_SIZE), **query})
        if not answer["items"] and answer.get("totalCount"):  # The page is gone: show the last one.
            self._state["page"] = str(answer["totalPages"])
            answer = await self._read({"pageSize": str(PAGE_SIZE), **self._build_query()})
        self._rows = rows = answer["items"]
        self._picked |= {row["id"]: row for row in rows if self._picked and row["id"] in self._picked}
        self._nothing.clear()
        self._body.set_visibility(bool(rows))
        self._body.content = self._build_markup(answer) if rows else ""
        if not rows:
            with self._nothing:
                self._show_empty(is_filtered=bool(query.keys() - {"sort", "page"}))

    async def refresh(self) -> None:
        """Show the table again, and update the address."""
        await self.show()
        self._update_address()

    def _build_query(self) -> dict[str, str]:
        filters = {name: str(field.value) for name, field in self._filters.items() if field.value}
        sort = {"sort": self._sort_default} if self._sort_default else {}
        return {**sort, **self._state, **filters}

    async def _on_change(self) -> None:
        self._state.pop("page", None)
        await self.refresh()

    async def _on_click(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        name, value = event.args
        if name in self._actions:
            await self._actions[name](value)
            return
        self._state[name] = value
        if name == "sort":
            self._state.pop("page", None)
        await self.refresh()
        ui.run_javascript(
            f"adloom.refocus({_write_js(f'[data-act={name}][data-key={self._name_key(name, value)}]')})"
        )

    async def _on_pick(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        row_id, is_picked = event.args
        chosen = [row for row in self._rows if row_id in {EVERY_ROW, row["id"]}]
        for row in chosen:
            if is_picked:
                self._picked[row["id"]] = row
            else:
                self._picked.pop(row["id"], None)
        self._show_chosen()
        if row_id == EVERY_ROW:
            await self.show()

    async def clear_picks(self) -> None:
        """Choose no row any more, and read all again."""
        self._picked.clear()
        self._show_chosen()
        await self.show()

    def _show_chosen(self) -> None:
        self._chosen.clear()
        self._chosen.set_visibility(bool(self._picked))
        if not self._picked or self._picks is None:
            return
        with self._chosen:
            ui.label(f"{len(self._picked):,} chosen").classes("strong").props('role="status"')
            self._picks(list(self._picked.values()), self.clear_picks)
            ui.button("Choose none", on_click=self.clear_picks).props("flat")

    @staticmethod
    def _name_key(name: str, value: str) -> str:
        return value.removeprefix("-") if name == "sort" else "at"

    def _update_address(self) -> None:
        query = {
            name: value
            for name, value in self._build_query().items()
            if (name, value) != ("sort", self._sort_default)
        }
        kept = {
            name: value
            for name, value in self._address.items()
            if name not in {*query, *self._filters, "page", "sort"}
        }
        ui.run_javascript(f"adloom.address({_write_js(urlencode({**kept, **query}))})")

    def _show_empty(self, *, is_filtered: bool) -> None:
        if is_filtered:
            add_empty_state(
                "search_off", "Nothing matches", NOTHING_FOUND_NOTE,
                action="Clear search and filters", on_action=self._clear,
            )  # fmt: skip
            return
        icon, title, note = self._empty
        label, href = self._empty_action or ("", "")
        add_empty_state(icon, title, note, action=label, href=href)

    async def _clear(self) -> None:
        self._state = {}
        for field in self._filters.values():
            field.value = None
        await self.refresh()

    def _build_markup(self, answer: Json) -> Markup:
        head = Markup("").join(self._build_head_cell(column) for column in self._columns)
        if self._picks is not None:
            is_all = all(row["id"] in self._picked for row in answer["items"])
            box = _build_pick_box(EVERY_ROW, "Choose all on this page", is_picked=is_all)
            head = Markup('<th scope="col" class="pick">{}</th>{}').format(box, head)
        rows = Markup("").join(self._build_row(row) for row in answer["items"])
        caption = Markup('<caption class="visually-hidden">{}</caption>').format(self._caption)
        foot = "" if self._total is None else _build_foot(self._columns, self._total())
        return _build_frame(caption if self._caption else "", head, rows, foot) + _build_pager(answer)

    def _build_head_cell(self, column: Column) -> Markup:
        if not column.sort and not column.more_sorts:
            return _build_plain_head(column)
        current = self._state.get("sort", self._sort_default)
        sorts = ((column.label, column.sort), *column.more_sorts)
        is_current = current.removeprefix("-") in {field for _, field in sorts}
        order = ("descending" if current.startswith("-") else "ascending") if is_current else "none"
        buttons = Markup(' <span aria-hidden="true">·</span> ').join(
            _build_sort_button(column, label, field, current) for label, field in sorts
        )
        return Markup('<th scope="col" class="{}" aria-sort="{}">{}</th>').format(
            _name_classes(column), order, buttons
        )

    def _build_row(self, row: Row) -> Markup:
        href = self._href(row) if self._href else ""
        cells = [column.show(row) for column in self._columns]
        if href and "<a " not in cells[0]:
            # The link is for the keyboard; a click anywhere in the row does the same.
            cells[0] = Markup('<a href="{}">{}</a>').format(href, cells[0])
        picks = Markup("")
        if self._picks is not None:
            box = _build_pick_box(row["id"], f"Choose {name_row(row)}", is_picked=row["id"] in self._picked)
            picks = Markup('<td class="pick">{}</td>').format(box)
        return _build_row(self._columns, cells, Markup(' data-href="{}"').format(href) if href else "", picks)


def build_plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> Markup:
    """Make a table of rows that are all here, without paging or sorting."""
    head = Markup("").join(_build_plain_head(column) for column in columns)
    return _build_frame(
        "", head, Markup("").join(_build_row(columns, [one.show(row) for one in columns]) for row in rows)
    )


def _build_frame(caption: str, head: str, rows: str, foot: str = "") -> Markup:
    # A wide table is scrolled by the keyboard too: where nothing in it takes the focus, it does itself.
    has_focus = any(tag in head + rows for tag in ("<a ", "<button", "<input"))
    keys = Markup("") if has_focus else Markup(' tabindex="0" role="group" aria-label="Table"')
    return Markup(
        '<div class="al-table-scroll"{}><table class="al-table">{}<thead><tr>{}</tr></thead><tbody>{}</tbody>{}</table></div>'
    ).format(keys, caption, head, rows, foot)


def _build_foot(columns: Sequence[Column], cells: Sequence[str]) -> Markup:
    return Markup('<tfoot class="strong">{}</tfoot>').format(_build_row(columns, cells))


def _build_plain_head(column: Column) -> Markup:
    label = column.label or Markup('<span class="visually-hidden">Actions</span>')
    return Markup('<th scope="col" class="{}">{}</th>').format(_name_classes(column), label)


def _build_sort_button(column: Column, label: str, field: str, current: str) -> Markup:
    if not field:
        return Markup("<span>{}</span>").format(label)
    is_current = current.removeprefix("-") == field
    is_falling = current.startswith("-")
    is_rising_next = is_falling if is_current else column.rises_first
    arrow = (" ↓" if is_falling else " ↑") if is_current else ""
    return Markup(
        '<button data-act="sort" data-value="{}" data-key="{}" aria-pressed="{}" title="{}">{}{}</button>'
    ).format(
        field if is_rising_next else f"-{field}", field, str(is_current).lower(),
        f"Sort by {label}", label, arrow,
    )  # fmt: skip


def _build_pick_box(row_id: str, label: str, *, is_picked: bool) -> Markup:
    """Make the box that chooses a row; its label fills the cell, to be hit on a phone."""
    return Markup('<label><input type="checkbox" data-pick="{}" aria-label="{}"{}></label>').format(
        row_id, label, Markup(" checked") if is_picked else ""
    )


def _build_row(
    columns: Sequence[Column], cells: Sequence[str], attributes: str = "", before: str = ""
) -> Markup:
    shown = Markup("").join(
        Markup('<td class="{}">{}</td>').format(_name_classes(column), cell)
        for column, cell in zip(columns, cells, strict=True)
    )
    return Markup("<tr{}>{}{}</tr>").format(attributes, before, shown)


def _name_classes(column: Column) -> str:
    return f"{'num ' if column.is_number else ''}{'wide' if column.is_wide_only else ''}".strip()


def _build_pager(answer: Json) -> Markup:
    total, size, number = answer["totalCount"], answer["pageSize"], answer["page"]
    if answer["totalPages"] <= 1:
        return Markup('<div class="al-pager"><span>{:,} in all</span></div>').format(total)
    first = (number - 1) * size + 1
    shown = f"{first:,}–{min(total, first + size - 1):,} of {total:,}"
    return Markup(
        '<div class="al-pager"><span>{}</span><div role="navigation" aria-label="{}">{}{}</div></div>'
    ).format(
        shown,
        "Pages of the table",
        _build_page_button("\u2039", "Previous page", number - 1, is_there=number > 1),
        _build_page_button("\u203a", "Next page", number + 1, is_there=number < answer["totalPages"]),
    )


def _build_page_button(sign: str, label: str, number: int, *, is_there: bool) -> Markup:
    return Markup(
        '<button data-act="page" data-value="{}" data-key="at" aria-label="{}"{}>{}</button>'
    ).format(number, label, "" if is_there else Markup(" disabled"), sign)


def _write_js(text: str) -> str:
    return msgspec.json.encode(text).decode()
