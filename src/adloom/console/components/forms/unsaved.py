"""The mark of a form that is not saved: while a page has one, the browser asks before it is left (`console.js`)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from nicegui import ui

from adloom.console.client import ProblemError
from adloom.console.components.layout import set_attributes


class UnsavedMark:
    """Marks the button of a form while its fields differ from what was saved."""

    def __init__(self, button: ui.button, fields: Mapping[str, Any]) -> None:
        self._button, self._fields = button, fields
        self._saved = self._read()
        for field in fields.values():
            field.on_value_change(self._show)

    def forget(self) -> None:
        """Take the fields as they are for saved."""
        self._saved = self._read()
        self._show()

    @contextmanager
    def hide_while_saving(self) -> Generator[None]:
        """Take the mark away first, as what follows may lead to another page; it comes back if the API refuses."""
        before = self._saved
        self.forget()
        try:
            yield
        except ProblemError:
            self._saved = before
            self._show()
            raise

    def _read(self) -> dict[str, Any]:
        return {name: field.value for name, field in self._fields.items()}

    def _show(self) -> None:
        if self._read() == self._saved:
            self._button.props(remove="data-unsaved")
        else:
            set_attributes(self._button, data_unsaved="")
