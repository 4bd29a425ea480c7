"""Selects that do what NiceGUI's own do not."""

from collections.abc import Sequence
from typing import Any

from nicegui import ui


class LongSelect(ui.select):
    """A select of many choices, filled once, and again only when they change: NiceGUI's own copies all for each property."""

    def _update_options(self) -> None:
        # A time zone has 490 choices, and a field of a form gets a dozen properties: 64 ms of the server, now 7.
        filled: tuple[list[Any], list[Any]] = (list(self._values), list(self._labels))
        if filled != getattr(self, "_filled", None):
            self._filled = filled
            super()._update_options()


class TextsSelect(ui.select):
    """A field for several texts, each of which becomes a chip.

    Enter adds what was typed, and so does leaving the field: Quasar itself would drop it without a word.
    """

    def __init__(self, label: str, value: Sequence[str]) -> None:
        super().__init__(
            sorted(value),
            label=label,
            value=list(value),
            multiple=True,
            with_input=True,
            new_value_mode="add-unique",
        )
        self.props("use-chips hide-dropdown-icon")
        self._typed = ""
        self.on("input-value", lambda event: self._keep(event.args))
        self.on_value_change(lambda: self._keep(""))
        self.on("blur", self.add_typed, args=[])

    def _keep(self, typed: str) -> None:
        self._typed = typed.strip()

    def add_typed(self) -> None:
        """Add what was typed; also before it is saved, because a tap on a button may come before the field is left."""
        typed, self._typed = self._typed, ""
        if typed and typed not in self.value:
            value: list[str] = [*self.value, typed]
            self.set_options(sorted(value), value=value)
