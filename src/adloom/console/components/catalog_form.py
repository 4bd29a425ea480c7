"""Forms of things of the catalog: the fields that they have more than others, and what happens if somebody was faster."""

import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from nicegui import ui

from adloom.console.client import Json, ProblemError
from adloom.console.components import checks
from adloom.console.components.form import Encode, Form
from adloom.console.components.format import moment as read_moment
from adloom.schedule.schedule import find_zone

STALE: Final = "STALE_WRITE"
MINUTES: Final = "%Y-%m-%dT%H:%M"


class CatalogForm(Form):
    """The fields of a thing; its `updatedAt` is sent along, so that nothing of somebody else is written over."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values)
        self._seen = (values or {}).get("updatedAt")

    def creation(self) -> Json:
        """Tell what makes a new thing: what was left empty is left to the API."""
        return {name: value for name, value in self.values().items() if value is not None}

    def patch(self) -> Json:
        """Tell what was changed, and which state of the thing that was about; nothing where nothing was."""
        changes = self.changes()
        return {**changes, "updatedAt": self._seen} if changes and self._seen else changes

    def show(self, error: ProblemError) -> None:
        """Show what the API refuses; whoever was too late can load the thing again."""
        if error.code == STALE:
            _say_stale(error)
        else:
            super().show(error)

    def given(self, name: str) -> Any:  # noqa: ANN401 - whatever a field has
        """Tell the value that a field was given."""
        return self._given.get(name)

    def encode(self, name: str, encode: Encode) -> None:
        """Say how what a field shows becomes what the API wants."""
        self._encoders[name] = encode

    def on_any_change(self, handler: Callable[[], object]) -> None:
        """Call when any of the fields so far has another value."""
        for field in self._fields.values():
            field.on_value_change(handler)

    def name(self, name: str, label: str, *, hint: str = "") -> ui.input | ui.textarea:
        """Add a field that has to be filled with a name."""
        return self.text(name, label, is_required=True, hint=hint, check=checks.name)

    def web(
        self, name: str, label: str, *, is_required: bool = False, hint: str = ""
    ) -> ui.input | ui.textarea:
        """Add a field for an address."""
        field = self.text(name, label, is_required=is_required, hint=hint, check=checks.web_address)
        field.props('inputmode="url" autocapitalize="off" spellcheck="false"')
        return field

    def whole(self, name: str, label: str, *, hint: str = "", is_positive: bool = False) -> ui.number:
        """Add a field for a whole number."""
        field = ui.number(label, value=self._given.get(name), min=1 if is_positive else 0, step=1)
        self._add(name, field, hint=hint, check=checks.positive if is_positive else checks.natural)
        self._encoders[name] = lambda value: None if value is None else int(value)
        return field

    def price(self, name: str, label: str, *, hint: str = "") -> ui.number:
        """Add a field for a price, which the API takes as a decimal number."""
        field = ui.number(label, value=self._given.get(name), min=0, step=0.01)
        self._add(name, field, hint=hint, check=checks.price)
        return field

    def sum(self, name: str, label: str, *, hint: str = "") -> ui.number:
        """Add a field for a sum in hundredths, shown in whole units."""
        field = self.money(name, label, hint=hint)
        self._add(name, field, hint=hint, check=checks.money)
        return field

    def zone(self, name: str, label: str = "Time zone", *, hint: str = "") -> ui.select:
        """Add a choice among all time zones."""
        zones = sorted({self._given.get(name) or "UTC", *zoneinfo.available_timezones()})
        self._given.setdefault(name, "UTC")
        return self.choice(name, label, zones, is_required=True, is_searchable=True, hint=hint)

    def moment(
        self,
        name: str,
        label: str,
        *,
        zone: Callable[[], str | None],
        hint: str = "",
        check: checks.Check | None = None,
    ) -> ui.input:
        """Add a field for a day and a time in a zone that another field may say."""
        given = self._given.get(name)
        shown = _local(given, zone())
        field = ui.input(label, value=shown).props('type="datetime-local" stack-label')
        self._add(
            name, field, hint=hint, check=lambda value: checks.moment(value) or (check and check(value))
        )
        # Seconds are not shown: what nobody has touched stays as it is.
        self._encoders[name] = lambda value: given if value == shown else _utc(value, zone())
        return field

    def clock(self, name: str, label: str, *, hint: str = "") -> ui.input:
        """Add a field for a time of day."""
        given = self._given.get(name)
        shown = (given or "")[:5]
        field = ui.input(label, value=shown).props('type="time" stack-label')
        self._add(name, field, hint=hint, check=checks.time_of_day)
        self._encoders[name] = lambda value: given if value == shown else (value or None)
        return field

    def several(  # noqa: PLR0913 - what such fields differ in
        self,
        name: str,
        label: str,
        *,
        options: Mapping[Any, str] | Sequence[str] = (),
        hint: str = "",
        is_open: bool = False,
        check: checks.Check | None = None,
    ) -> ui.select:
        """Add a choice of several values; an open one takes others than it offers."""
        value = list(self._given.get(name) or [])
        choices: Any = dict(options) if isinstance(options, Mapping) else sorted({*options, *value})
        field = ui.select(
            choices,
            label=label,
            value=value,
            multiple=True,
            with_input=True,
            new_value_mode="add-unique" if is_open else None,
        ).props("use-chips")
        if is_open:
            field.props("hide-dropdown-icon")
        self._add(name, field, hint=hint, check=check)
        self._encoders[name] = lambda value: list(value or [])
        return field


def _local(given: str | None, zone: str | None) -> str:
    at = read_moment(given)
    return "" if at is None else at.astimezone(find_zone(zone or "UTC") or UTC).strftime(MINUTES)


def _utc(value: str, zone: str | None) -> str | None:
    if not value:
        return None
    at = datetime.fromisoformat(value).replace(tzinfo=find_zone(zone or "UTC") or UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _say_stale(error: ProblemError) -> None:
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html("<h2>Somebody else was faster</h2>", sanitize=False)
        ui.label(error.message)
        with ui.element("div").classes("al-actions"):
            ui.button("Stay here", on_click=dialog.close).props("flat")
            ui.button("Load it again", on_click=ui.navigate.reload).props("unelevated")
