"""Selects of many choices are filled once, and follow their choices."""

from typing import Any

from nicegui import Client, ui

from adloom.console.components.forms.form import Form
from adloom.console.components.forms.inputs import LongSelect

CHOICES = {"a": "Apple", "b": "Pear", "c": "Plum"}


def _options(field: ui.select) -> Any:
    props: dict[str, Any] = {**field.props}
    return props["options"]


def test_a_property_does_not_fill_a_select_again() -> None:
    with Client(ui.page("/of-a-test")):
        field = Form({}).add_time_zone("timezone")
        filled = _options(field)
        field.props["hint"] = "Where you are."
        field.value = "Europe/Berlin"

        assert _options(field) is filled
        assert filled[field.props["model-value"]["value"]]["label"] == "Europe/Berlin"


def test_other_choices_fill_it_again() -> None:
    with Client(ui.page("/of-a-test")):
        field = LongSelect(CHOICES, value="b", with_input=True)

        field.set_options({"b": "Pear", "d": "Quince"})
        assert (field.value, field.props["model-value"]) == ("b", {"value": 0, "label": "Pear"})
        assert field.props["options"] == [{"value": 0, "label": "Pear"}, {"value": 1, "label": "Quince"}]

        field.set_options({"e": "Pear", "d": "Quince"})
        assert field.value is None, "another choice has the same label"
