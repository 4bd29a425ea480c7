"""The mark of a form that is not saved: while a page has one, the browser asks before it is left (`console.js`).

Such a page also waits longer for a browser that has lost its connection: after that its form is empty.
"""

import copy
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakSet

from nicegui import Client, ui

from adloom.console.client import ProblemError
from adloom.console.components.layout import set_attributes

RECONNECT_SECONDS_MAX: Final = 900.0
# Of a process, as each takes up to 1 MB; the others wait as pages without a form do.
WAITING_MAX: Final = 100
_waiting: Final[WeakSet[Client]] = WeakSet()


class UnsavedMark:
    """Marks the button of a form while its fields differ from what was saved."""

    def __init__(self, button: ui.button, fields: Mapping[str, Any]) -> None:
        self._button, self._fields = button, fields
        self._saved = self._read()
        self._client = ui.context.client
        self._page = self._client.page
        self._waiting_page = copy.copy(self._page)
        self._waiting_page.reconnect_timeout = RECONNECT_SECONDS_MAX
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
            _waiting.discard(self._client)
            self._client.page = self._page
            self._button.props(remove="data-unsaved")
        else:
            if self._client in _waiting or len(_waiting) < WAITING_MAX:
                _waiting.add(self._client)
                self._client.page = self._waiting_page
            set_attributes(self._button, data_unsaved="")
