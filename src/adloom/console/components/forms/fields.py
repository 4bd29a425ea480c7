"""Fields that need more than a form: one that references an item of the API by its id, and one for a day."""

from collections.abc import Callable
from datetime import date
from typing import Any, Final

from nicegui import ui

from adloom.console.client import ApiClient, Json
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import set_attributes

OPTIONS_MAX: Final = 50
SEARCH_WAIT_MILLISECONDS: Final = 200
DAY_WAIT_MILLISECONDS: Final = 700  # Each typed digit of a year is another day.
YEAR_MIN: Final = 2000


async def reference_field(  # noqa: PLR0913 - a field, and where its choices come from
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
    options: dict[str, str] = dict([current]) if current else {}

    async def find(text: str) -> dict[str, str]:
        answer = await api.get(path, search=text or None, pageSize=OPTIONS_MAX, **query)
        return {row["id"]: shown(row) for row in answer["items"]}

    options |= await find("")
    field = form.choice(
        name,
        label,
        options,
        is_required=is_required,
        is_clearable=not is_required,
        is_searchable=True,
        hint=hint,
    )
    if len(options) >= OPTIONS_MAX:

        async def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
            text = event.args if isinstance(event.args, str) else ""
            chosen = {field.value: options[field.value]} if field.value in options else {}
            options.clear()
            options.update(chosen | await find(text))
            field.set_options(options)

        field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}").on("input-value", search)
    return field


async def owner_field(form: Form, api: ApiClient, noun: str) -> None:
    """Add the field for the advertiser or publisher that owns an item."""
    await reference_field(
        form,
        f"{noun}Id",
        noun.capitalize(),
        api=api,
        path=f"/admin/{noun}s",
        shown=lambda row: row["name"],
        hint="Empty: it belongs to the house.",
    )


async def fetch_name(api: ApiClient, path: str, item_id: str | None) -> str:
    return "" if item_id is None else (await api.get(f"{path}/{item_id}"))["name"]


def day_field(name: str, label: str, value: date, on_day: Callable[[date], None]) -> None:
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
