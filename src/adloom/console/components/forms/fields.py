"""Fields that need more than a form: one that references an item of the API by its id, with a way to make that item, and one for a day."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from nicegui import ui

from adloom.console.client import ApiClient, Json, ProblemError, parse_id
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_link_button, set_attributes

OPTIONS_MAX: Final = 50
SEARCH_WAIT_MILLISECONDS: Final = 200
DAY_WAIT_MILLISECONDS: Final = 700  # Each typed digit of a year is another day.
YEAR_MIN: Final = 2000


def name_row(row: Json) -> str:
    """Return what people call a row of the API."""
    return row.get("name") or row.get("title") or row.get("label") or row["id"]


class SearchedOptions:
    """The choices of a select that is searched on the server while typing, by name."""

    def __init__(
        self,
        api: ApiClient,
        path: str,
        shown: Callable[[Json], str],
        query: Mapping[str, object],
        key: str = "id",
    ) -> None:
        self._api = api
        self._path = path
        self._shown = shown
        self._key = key
        self._query = query
        self.options: dict[str, str] = {}

    async def find(self, text: str) -> dict[str, str]:
        rows = await self._api.get_items(self._path, search=text or None, pageSize=OPTIONS_MAX, **self._query)
        return {row[self._key]: self._shown(row) for row in rows}

    async def load(self, value: str | None) -> None:
        """Read the first choices, and the one that is chosen already."""
        self.options |= await self.find("")
        if not value or value in self.options:
            return
        if self._key != "id":
            self.options |= {value: (await self.find(value)).get(value, value)}
            return
        try:
            self.options[value] = self._shown(await self._api.get(f"{self._path}/{value}"))
        except ProblemError:
            self.options[value] = "not there any more"

    def follow(self, field: ui.select) -> None:
        """Search while somebody types, unless all choices are there."""
        if len(self.options) < OPTIONS_MAX:
            return

        async def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
            text = event.args if isinstance(event.args, str) else ""
            chosen = {field.value: self.options[field.value]} if field.value in self.options else {}
            found = chosen | await self.find(text)
            self.options.clear()
            self.options.update(found)
            field.set_options(self.options)

        field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}").on("input-value", search)


async def add_picker(  # noqa: PLR0913 - a field, and where its choices come from
    label: str,
    value: str | None,
    *,
    api: ApiClient,
    path: str,
    shown: Callable[[Json], str] = name_row,
    is_clearable: bool = False,
    key: str = "id",
    **query: object,
) -> ui.select:
    """Add a select of items of the API outside of a form, searched by name; `key` is the field that is chosen."""
    found = SearchedOptions(api, path, shown, query, key)
    await found.load(value)
    field = ui.select(
        found.options, label=label, value=value or None, with_input=True, clearable=is_clearable
    )
    found.follow(field)
    return field


async def add_reference_field(  # noqa: PLR0913 - a field, and where its choices come from
    form: Form,
    name: str,
    label: str,
    *,
    api: ApiClient,
    path: str,
    shown: Callable[[Json], str],
    hint: str = "",
    is_required: bool = False,
    current: tuple[str, str] | None = None,
    **query: object,
) -> ui.select:
    """Add a field for the id of an item, searched on the server while typing; `current` is an id and its label."""
    found = SearchedOptions(api, path, shown, query)
    found.options |= dict([current]) if current else {}
    await found.load(form.get_initial(name))
    field = form.add_choice(
        name,
        label,
        found.options,
        is_required=is_required,
        is_clearable=not is_required,
        is_searchable=True,
        hint=hint,
    )
    found.follow(field)
    return field


async def add_owner_field(form: Form, api: ApiClient, noun: str) -> ui.select:
    """Add the field for the advertiser or publisher that owns an item."""
    return await add_reference_field(
        form,
        f"{noun}Id",
        noun.capitalize(),
        api=api,
        path=f"/admin/{noun}s",
        shown=lambda row: row["name"],
        hint="Empty: it belongs to the house.",
    )


async def add_banner_field(form: Form, api: ApiClient, advertiser_id: str | None) -> ui.select:
    """Add the field for a banner of an advertiser."""
    return await add_reference_field(
        form,
        "bannerId",
        "Banner",
        api=api,
        path="/admin/banners",
        shown=lambda row: row["title"],
        is_required=True,
        advertiserId=advertiser_id,
    )


async def fetch_name(api: ApiClient, path: str, item_id: str | None) -> str:
    return "" if item_id is None else (await api.get(f"{path}/{item_id}"))["name"]


def add_day_field(name: str, label: str, value: date, on_day: Callable[[date], None]) -> None:
    """Add a field for a day; `on_day` is called with each complete day that is chosen."""
    field = ui.input(label, value=str(value))
    set_attributes(field, data_field=name).props(
        f'outlined dense type="date" debounce="{DAY_WAIT_MILLISECONDS}"'
    )

    def choose(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        try:
            day = date.fromisoformat(event.value or "")
        except ValueError:
            return  # It is still being typed.
        if day.year >= YEAR_MIN and day != value:
            on_day(day)

    field.on_value_change(choose)


THEN: Final = "then"
NEW: Final = "new"
HOME: Final = "/console/"


def add_new_button(noun: str, *, back: str, **given: str | None) -> None:
    """Add a button to the form of a new item; when it is made, `back` is opened with its id as `new`."""
    add_link_button(f"New {noun}", build_form_address(noun, back=back, **given), icon="add", look="flat")


def build_form_address(noun: str, *, back: str, **given: str | None) -> str:
    query = {name: value for name, value in given.items() if value}
    return f"/console/{noun}s/new?{urlencode({**query, THEN: back})}"


def find_way_back(query: Mapping[str, str], item_id: str | None = None) -> str | None:
    """Return the page of the console that the address says to open next, with the id of what was made."""
    asked = query.get(THEN, "")
    try:
        parts = urlsplit(asked)
    except ValueError:
        return None
    # Browsers read a backslash as a slash, and leave out white space: such an address could lead elsewhere.
    is_ours = asked.startswith(HOME) and asked.isprintable() and "\\" not in asked
    if not is_ours or parts.netloc or parts.scheme:
        return None
    chosen = [(NEW, item_id)] if item_id else []
    return f"{parts.path}?{urlencode([*parse_qsl(parts.query), *chosen])}"


def find_made(query: Mapping[str, str]) -> str | None:
    """Return the id of what somebody has made and comes back with."""
    return parse_id(query.get(NEW, ""))
