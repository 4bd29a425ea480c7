"""Forms: fields named as the API names them, checked as one types, with the API's own words at each field.

form = Form(values=campaign)
form.text("name", words.NAME, is_required=True)
form.number("dailyBudgetPaisa", words.BUDGET)
...
try: await visit.api.patch(path, form.changes())
except ProblemError as error: form.show(error)
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from adloom.console.client import ProblemError
from adloom.console.components.attributes import attributed
from adloom.console.components.toast import say_bad

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
