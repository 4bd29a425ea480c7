"""A figure that matters, with a line of how it went."""

from collections.abc import Sequence

from markupsafe import Markup
from nicegui import ui

from adloom.console.components.chart import spark


class Tile:
    """A label, a figure, a note and a small line; `update` shows them anew."""

    def __init__(self, label: str, *, hint: str = "") -> None:
        self._label = label
        self._element = ui.html("", sanitize=False).classes("al-tile")
        if hint:
            self._element.tooltip(hint)

    def update(
        self, figure: str, *, note: str = "", values: Sequence[float | None] = (), kind: str = ""
    ) -> None:
        """Show a figure."""
        content = Markup(
            '<div class="label">{}</div><div class="figure {}">{}</div><div class="note" title="{}">{}</div>{}'
        ).format(self._label, kind, figure, note, note, spark(values) if values else "")
        if self._element.content != content:
            self._element.content = content
