"""Fields for a day and for a thing of the API."""

from collections.abc import Callable
from datetime import date
from typing import Any, Final

from nicegui import ui

from adloom.console.client import ApiClient, Json
from adloom.console.components.attributes import attributed
from adloom.console.components.forms.form import CatalogForm

OPTIONS_MAX: Final = 50
WAIT_MILLISECONDS: Final = 200

Label = Callable[[Json], str]


async def chooser(  # noqa: PLR0913 - a field, and where its choices come from
    form: CatalogForm,
    name: str,
    label: str,
    *,
    api: ApiClient,
    path: str,
    shown: Label,
    hint: str = "",
    is_required: bool = False,
    current: tuple[str, str] | None = None,
    **query: object,
) -> ui.select:
    """Add a field that names a thing by its id; `current` is the one that is chosen, by its id and label."""
    options: dict[str, str] = dict([current]) if current else {}

    async def found(text: str) -> dict[str, str]:
        answer = await api.get(path, search=text or None, pageSize=OPTIONS_MAX, **query)
        return {row["id"]: shown(row) for row in answer["items"]}

    options |= await found("")
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
            options.update(chosen | await found(text))
            field.set_options(options)

        field.props(f"input-debounce={WAIT_MILLISECONDS}").on("input-value", search)
    return field


async def name_of(api: ApiClient, path: str, thing_id: str | None, field: str = "name") -> str:
    """Tell what a thing is called; nothing where none is named."""
    return "" if thing_id is None else (await api.get(f"{path}/{thing_id}"))[field]


TYPED_MILLISECONDS: Final = 700  # Each digit of a year makes another day of it.
YEAR_MIN: Final = 2000


def day_field(name: str, label: str, value: date, on_day: Callable[[date], None]) -> None:
    """Add a field; whoever listens hears of each whole day that is chosen."""
    field = ui.input(label, value=str(value))
    attributed(field, data_field=name).props(f'outlined dense type="date" debounce="{TYPED_MILLISECONDS}"')

    def chosen(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        try:
            day = date.fromisoformat(event.value or "")
        except ValueError:
            return  # It is still being typed.
        if day.year >= YEAR_MIN and day != value:
            on_day(day)

    field.on_value_change(chosen)
