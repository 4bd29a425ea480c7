"""Forms: fields named as the API names them, checked while typing; errors of the API are shown at their field."""

import zoneinfo
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from adloom.console.client import Json, ProblemError
from adloom.console.components.attributes import attributed
from adloom.console.components.format import moment as read_moment
from adloom.console.components.forms import checks
from adloom.console.components.messages import say_bad
from adloom.schedule.schedule import find_zone

Check = Callable[[Any], str | None]
# What a field shows, as the API wants it.
Encode = Callable[[Any], object]


class Form:
    """The fields of one request; build them where they shall stand."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._given = dict(values or {})
        self._fields: dict[str, Any] = {}
        self._encoders: dict[str, Encode] = {}
        self._refused: dict[str, str] = {}

    def text(  # noqa: PLR0913 - what fields differ in
        self,
        name: str,
        label: str,
        *,
        is_required: bool = False,
        hint: str = "",
        check: Check | None = None,
        is_long: bool = False,
    ) -> ui.input | ui.textarea:
        """Add a field for text; an empty one is null."""
        kind = ui.textarea if is_long else ui.input
        field = kind(label, value=self._given.get(name) or "")
        self._add(name, field, is_required=is_required, hint=hint, check=check)
        self._encoders[name] = lambda value: str(value).strip() or None
        return field

    def password(self, name: str, label: str, *, autocomplete: str = "new-password") -> ui.input:
        """Add a field for a password."""
        field = ui.input(label, password=True, password_toggle_button=True)
        attributed(field, autocomplete=autocomplete)
        self._add(name, field, is_required=True)
        return field

    def number(  # noqa: PLR0913 - what fields differ in
        self,
        name: str,
        label: str,
        *,
        is_required: bool = False,
        hint: str = "",
        least: float | None = None,
        most: float | None = None,
        is_whole: bool = True,
    ) -> ui.number:
        """Add a field for a number."""
        field = ui.number(label, value=self._given.get(name), min=least, max=most)
        self._add(name, field, is_required=is_required, hint=hint)
        self._encoders[name] = lambda value: None if value is None else (int(value) if is_whole else value)
        return field

    def money(self, name: str, label: str, *, is_required: bool = False, hint: str = "") -> ui.number:
        """Add a field for a sum: shown as 1234.56, sent in hundredths."""
        paisa = self._given.get(name)
        field = ui.number(
            label, value=None if paisa is None else paisa / 100, min=0, format="%.2f", step=0.01
        )
        self._add(name, field, is_required=is_required, hint=hint)
        self._encoders[name] = lambda value: None if value is None else round(value * 100)
        return field

    def choice(  # noqa: PLR0913 - what fields differ in
        self,
        name: str,
        label: str,
        options: Mapping[str, str] | Sequence[str],
        *,
        is_required: bool = False,
        is_clearable: bool = False,
        is_searchable: bool = False,
        hint: str = "",
    ) -> ui.select:
        """Add a choice among values; a mapping gives each its label."""
        choices: Any = dict(options) if isinstance(options, Mapping) else list(options)
        field = ui.select(
            choices,
            label=label,
            value=self._given.get(name),
            clearable=is_clearable,
            with_input=is_searchable,
        )
        self._add(name, field, is_required=is_required, hint=hint)
        return field

    def flag(self, name: str, label: str) -> ui.switch:
        """Add a switch."""
        field = ui.switch(label, value=bool(self._given.get(name)))
        self._fields[name] = field
        return field

    def own(self, name: str, field: Any, encode: Encode | None = None) -> None:  # noqa: ANN401 - any element with a value
        """Add an element of one's own that has a `value`."""
        self._fields[name] = field
        if encode is not None:
            self._encoders[name] = encode

    def values(self) -> dict[str, Any]:
        """Tell what the fields say, in the names and units of the API."""
        return {
            name: self._encoders.get(name, lambda value: value)(field.value)
            for name, field in self._fields.items()
        }

    def changes(self) -> dict[str, Any]:
        """Tell what differs from the values that the form was given."""
        return {name: value for name, value in self.values().items() if value != self._given.get(name)}

    def is_valid(self) -> bool:
        """Check every field, and show what is wrong."""
        fields: list[ValidationElement[Any]] = [
            field for field in self._fields.values() if isinstance(field, ValidationElement)
        ]
        return all([field.validate() for field in fields])  # noqa: C419 - all are to show theirs

    def show(self, error: ProblemError) -> None:
        """Show what the API refuses: at the field where it is about one, else as a message."""
        self._refused = {}
        elsewhere = [message for field, message in error.fields.items() if field not in self._fields]
        for name, message in error.fields.items():
            field = self._fields.get(name)
            if isinstance(field, ValidationElement):
                self._refused[name] = message
                field.validate()
        if not self._refused or elsewhere:
            say_bad(error.message)

    def actions(
        self,
        label: str,
        on_save: Callable[[], Awaitable[None]],
        *,
        on_cancel: Callable[[], object] | None = None,
    ) -> ui.button:
        """Add the buttons of the form; nothing is sent while a field is wrong."""

        async def save() -> None:
            self._refused = {}
            if not self.is_valid():
                return
            button.disable()
            try:
                await on_save()
            except ProblemError as error:
                self.show(error)
            finally:
                if not button.is_deleted:
                    button.enable()

        with ui.element("div").classes("al-actions row-of"):
            if on_cancel is not None:
                ui.button("Cancel", on_click=on_cancel).props("flat")
            button = ui.button(label, on_click=save).props("unelevated")
        return button

    def _add(
        self,
        name: str,
        field: Any,  # noqa: ANN401 - inputs have no type in common
        *,
        is_required: bool = False,
        hint: str = "",
        check: Check | None = None,
    ) -> None:
        self._fields[name] = field
        attributed(field, data_field=name).props("outlined dense bottom-slots").classes("full")
        if hint:
            field.props["hint"] = hint

        def judged(value: Any) -> str | None:  # noqa: ANN401 - as the field has it
            if name in self._refused:
                return self._refused[name]
            if is_required and value in (None, "", []):
                return "is required"
            return check(value) if check is not None and value not in (None, "") else None

        field.validation = judged
        field.error = None  # Nobody has typed anything yet.

        def forget_refusal() -> None:
            if self._refused.pop(name, None) is not None:
                field.validate()

        # What is typed now is not what was refused.
        field.on_value_change(forget_refusal)


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
