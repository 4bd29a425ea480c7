"""Forms: fields named as the API names them, checked while typing; errors of the API appear at their field.

form = Form(values=campaign)
form.add_name("name", "Name")
form.add_money("dailyBudgetPaisa", "Daily budget")
form.add_buttons("Save", save)  # save() calls the API with form.patch_body()
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from adloom.console.client import Json, ProblemError
from adloom.console.components.forms import checks, inputs
from adloom.console.components.forms.unsaved import UnsavedMark
from adloom.console.components.forms.values import convert_to_local, convert_to_utc, flatten, nest, offer_zone
from adloom.console.components.layout import add_div, set_attributes
from adloom.console.components.messages import notify_error, open_dialog, show_stale

STALE: Final = "STALE_WRITE"

# Turns the value of a field into what the API wants.
Encode = Callable[[Any], object]


class Form:
    """The fields of one request. Each method adds a field where it is called.

    `updatedAt` of the given values is sent with a change, so that the API refuses to overwrite a newer state.
    A field of an object within is called by both names: `pacing.warmup`. Enter in a field of one line presses the
    button (`console.js`). With `is_focused` the first field has the focus at once. `suggested` values are shown in
    place of the given ones, and are a change.
    """

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        is_focused: bool = False,
        suggested: Mapping[str, Any] | None = None,
    ) -> None:
        self._is_focused = is_focused
        self._given = flatten(values or {})
        self._initial = self._given | flatten(suggested or {})
        self._fields: dict[str, Any] = {}
        self._encoders: dict[str, Encode] = {}
        self._decoders: dict[str, Encode] = {}  # Of fields that show something else than what is sent.
        self._refused: dict[str, str] = {}

    def add_text(  # noqa: PLR0913 - what fields differ in
        self,
        name: str,
        label: str,
        *,
        is_required: bool = False,
        hint: str = "",
        check: checks.Check | None = None,
        is_long: bool = False,
        shown: str | None = None,
    ) -> ui.input | ui.textarea:
        """Add a field for text; an empty one is sent as null. `shown` is for a value that is not text itself."""
        kind = ui.textarea if is_long else ui.input
        field = kind(label, value=self._initial.get(name) or "" if shown is None else shown)
        self._add(name, field, is_required=is_required, hint=hint, check=check)
        self._encoders[name] = lambda value: str(value).strip() or None
        return field

    def add_name(self, name: str, label: str, *, hint: str = "") -> ui.input | ui.textarea:
        return self.add_text(name, label, is_required=True, hint=hint, check=checks.check_name)

    def add_url(
        self, name: str, label: str, *, is_required: bool = False, hint: str = ""
    ) -> ui.input | ui.textarea:
        field = self.add_text(name, label, is_required=is_required, hint=hint, check=checks.check_web_address)
        field.props('inputmode="url" autocapitalize="off" spellcheck="false"')
        return field

    def add_password(
        self,
        name: str,
        label: str,
        *,
        autocomplete: str = "new-password",
        is_required: bool = True,
        check: checks.Check | None = None,
    ) -> ui.input:
        """Add a field for a password; an empty one is sent as null."""
        field = ui.input(label, password=True, password_toggle_button=True)
        set_attributes(field, autocomplete=autocomplete)
        self._add(name, field, is_required=is_required, check=check)
        self._encoders[name] = lambda value: value or None
        return field

    def add_integer(self, name: str, label: str, *, hint: str = "", is_positive: bool = False) -> ui.number:
        field = inputs.IntegerField(label, self._initial.get(name))
        check = checks.check_positive if is_positive else checks.check_natural
        self._add(name, field, hint=hint, check=check)
        self._encoders[name] = lambda value: value if isinstance(value, int) else None
        return field

    def add_price(self, name: str, label: str, *, hint: str = "") -> inputs.AmountField:
        """Add a field for a price, which is sent as a decimal number."""
        field = inputs.add_price_field(label, self._initial.get(name))
        self._add(name, field, hint=hint, check=inputs.check_price)
        return field

    def add_money(self, name: str, label: str, *, hint: str = "", is_positive: bool = False) -> ui.number:
        """Shown with the decimals of the currency, sent in hundredths; one that has to be positive is required."""
        field, check = inputs.add_money_field(label, self._initial.get(name), is_positive=is_positive)
        self._add(name, field, is_required=is_positive, hint=hint, check=check)
        self._encoders[name] = inputs.count_paisa
        return field

    def add_choice(  # noqa: PLR0913 - what fields differ in
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
        """Choose one value; a mapping gives each value its label. One that is not offered is not chosen."""
        choices: Any = dict(options) if isinstance(options, Mapping) else list(options)
        given = self._initial.get(name)
        field = inputs.LongSelect(
            choices,
            label=label,
            value=given if given in choices else None,
            clearable=is_clearable,
            with_input=is_searchable,
        )
        self._add(name, field, is_required=is_required, hint=hint)
        return field

    def add_texts(
        self, name: str, label: str, *, hint: str = "", check: checks.Check | None = None
    ) -> ui.select:
        """Add a field for several texts; Enter adds one."""
        field = inputs.TextsSelect(label, self._initial.get(name) or [])
        self._add(name, field, hint=hint, check=check)
        self._encoders[name] = lambda value: list(value or [])
        return field

    def add_choices(
        self,
        name: str,
        label: str,
        options: Mapping[str, str],
        *,
        hint: str = "",
        check: checks.Check | None = None,
    ) -> ui.select:
        """Choose several values; the options give each its label."""
        value = list(self._initial.get(name) or [])
        field = inputs.LongSelect(dict(options), label=label, value=value, multiple=True, with_input=True)
        field.props("use-chips")
        self._add(name, field, hint=hint, check=check)
        self._encoders[name] = lambda value: list(value or [])
        return field

    def add_flag(self, name: str, label: str) -> ui.switch:
        field = ui.switch(label, value=bool(self._initial.get(name)))
        self._fields[name] = field
        return field

    def add_time_zone(self, name: str, *, is_required: bool = True, hint: str = "") -> ui.select:
        zones = offer_zone(self._initial.get(name))
        if is_required:
            self._initial.setdefault(name, "UTC")
        options: Any = {"is_required": is_required, "is_clearable": not is_required, "hint": hint}
        return self.add_choice(name, "Time zone", zones, is_searchable=True, **options)

    def add_moment(
        self,
        name: str,
        label: str,
        *,
        zone: Callable[[], str | None],
        hint: str = "",
        check: checks.Check | None = None,
    ) -> ui.input:
        """Add a field for a day and a time; `zone` is called late, as another field may name it."""
        given = self._initial.get(name)
        shown = convert_to_local(given, zone())
        field = ui.input(label, value=shown).props('type="datetime-local" stack-label')
        self._add(
            name, field, hint=hint, check=lambda value: checks.check_moment(value) or (check and check(value))
        )
        # Seconds are not shown: an untouched field keeps its exact value.
        self._encoders[name] = lambda value: given if value == shown else convert_to_utc(value, zone())
        return field

    def add_period(
        self, zone_name: str, first: tuple[str, str], last: tuple[str, str], *, hint: str = ""
    ) -> None:
        """Add fields for a time zone, and for a start and an end in it; each of these is a name and a label."""
        zone = self.add_time_zone(zone_name)
        starts = self.add_moment(*first, zone=lambda: zone.value, hint=hint)
        ends = self.add_moment(
            *last,
            zone=lambda: zone.value,
            hint=hint,
            check=lambda value: "must be after the start" if starts.value and value <= starts.value else None,
        )
        # A new start can make the end right or wrong.
        starts.on_value_change(lambda: ends.validate() if ends.value else None)

    def add_time_of_day(self, name: str, label: str) -> ui.input:
        given = self._initial.get(name)
        shown = (given or "")[:5]
        field = ui.input(label, value=shown).props('type="time" stack-label')
        self._add(name, field, check=checks.check_time_of_day)
        self._encoders[name] = lambda value: given if value == shown else (value or None)
        return field

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields that were added, of objects within the names of these."""
        return frozenset(name.split(".")[0] for name in self._fields)

    def get_initial(self, name: str) -> Any:  # noqa: ANN401 - whatever a field has
        return self._initial.get(name)

    def encode(self, name: str, encode: Encode, decode: Encode | None = None) -> None:
        self._encoders[name] = encode
        if decode is not None:
            self._decoders[name] = decode

    def read_values(self) -> dict[str, Any]:
        """Return the values in the names and units of the API."""
        return nest(self._read_flat_values())

    def fill(self, values: Mapping[str, Any]) -> None:
        """Set fields as if they were typed; a field with an encoder has a decoder too, if its values are no text."""
        for name, value in values.items():
            if name in self._fields:
                self._fields[name].value = self._decoders.get(name, lambda one: one)(value)

    def create_body(self) -> Json:
        """Return the values without empty ones, which get the API's defaults; a default that was cleared is null."""
        return nest(
            {
                name: value
                for name, value in self._read_flat_values().items()
                if value is not None or self._initial.get(name) is not None
            }
        )

    def patch_body(self) -> Json:
        """Return the changed values with the `updatedAt` they are based on; empty if nothing changed.

        An object within is sent as a whole if a field of it has changed.
        """
        values = self._read_flat_values()
        changed = {name.split(".")[0] for name, value in values.items() if value != self._given.get(name)}
        changes = {name: value for name, value in nest(values).items() if name in changed}
        seen = self._initial.get("updatedAt")
        return {**changes, "updatedAt": seen} if changes and seen else changes

    def on_any_change(self, handler: Callable[[], object]) -> None:
        """Call `handler` when a field that exists now changes."""
        for field in self._fields.values():
            field.on_value_change(handler)

    def is_valid(self) -> bool:
        """Check every field, and show what is wrong."""
        fields: list[ValidationElement[Any]] = [
            field for field in self._fields.values() if isinstance(field, ValidationElement)
        ]
        return all([field.validate() for field in fields])  # noqa: C419 - each has to show its error

    def show_error(self, error: ProblemError) -> None:
        """Show an error of the API at its field, or as a message; a stale form offers to reload."""
        if error.code == STALE:
            show_stale(error.message)
            return
        self._refused = {}
        elsewhere = [message for field, message in error.fields.items() if field not in self._fields]
        for name, message in error.fields.items():
            field = self._fields.get(name)
            if isinstance(field, ValidationElement):
                self._refused[name] = message
                field.validate()
        if not self._refused or elsewhere:
            notify_error(error.message)

    def add_buttons(
        self,
        label: str,
        on_save: Callable[[], Awaitable[None]],
        *,
        on_cancel: Callable[[], object] | None = None,
        is_loss_asked: bool = True,
    ) -> ui.button:
        """Add the buttons of the form; `on_save` is not called while a field is wrong.

        Who leaves the page while fields are changed and not saved is asked first, by the browser (`console.js`).
        """

        async def save() -> None:
            self._refused = {}
            for field in self._fields.values():
                if isinstance(field, inputs.TextsSelect):
                    field.add_typed()
            if not self.is_valid():
                return
            button.disable()
            try:
                with mark.hide_while_saving():
                    await on_save()
            except ProblemError as error:
                self.show_error(error)
            finally:
                if not button.is_deleted:
                    button.enable()

        with add_div("al-actions row-of"):
            if on_cancel is not None:
                cancel = ui.button("Cancel", on_click=lambda: mark.forget())  # noqa: PLW0108 - it is made below
                cancel.props("flat").on_click(on_cancel)
            button = ui.button(label, on_click=save).props("unelevated")
            set_attributes(button, data_submits=self._id)
        mark = UnsavedMark(button, self._fields if is_loss_asked else {})
        return button

    @property
    def _id(self) -> str:
        return str(next((field.id for field in self._fields.values()), ""))

    def _read_flat_values(self) -> dict[str, Any]:
        return {
            name: self._encoders.get(name, lambda value: value)(field.value)
            for name, field in self._fields.items()
        }

    def _add(
        self,
        name: str,
        field: Any,  # noqa: ANN401 - inputs have no type in common
        *,
        is_required: bool = False,
        hint: str = "",
        check: checks.Check | None = None,
    ) -> None:
        if self._is_focused and not self._fields:
            field.props("autofocus")
        self._fields[name] = field
        set_attributes(field, data_field=name, data_form=self._id)
        field.props("outlined dense bottom-slots").classes("full")
        if hint:
            field.props["hint"] = hint

        def validate(value: Any) -> str | None:  # noqa: ANN401 - as the field has it
            if name in self._refused:
                return self._refused[name]
            if is_required and value in (None, "", []):
                return "is required"
            return check(value) if check is not None and value not in (None, "") else None

        field.validation = validate
        field.error = None  # Setting `validation` checks at once, before anything was typed.

        def forget_refusal() -> None:
            if self._refused.pop(name, None) is not None:
                field.validate()

        # The API refused the old value, not the one typed now.
        field.on_value_change(forget_refusal)


@contextmanager
def open_form_dialog(
    title: str,
    action: str,
    on_save: Callable[[Form], Awaitable[None]],
    values: Mapping[str, Any] | None = None,
) -> Generator[Form]:
    """Open a dialog with a form; it closes when `on_save` has succeeded."""
    with open_dialog(title) as dialog:
        form = Form(values, is_focused=True)
        yield form

        async def save() -> None:
            await on_save(form)
            if not dialog.is_deleted:  # What was saved may have shown anew where the dialog was opened.
                dialog.close()

        form.add_buttons(action, save, on_cancel=dialog.close)
