"""A field for a day, in the browser's own way."""

from collections.abc import Callable
from datetime import date
from typing import Any, Final

from nicegui import ui

from adloom.console.components.attributes import attributed

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
