"""The form of a site: shapes of a day as text and as a picture, and objects within a form."""

import pytest

from adloom.console.components.forms.form import Form
from adloom.console.pages.sites.fields import draw_shape, format_shape, parse_shape


@pytest.mark.parametrize(
    ("text", "values"),
    [("1 2, 3.5", [1.0, 2.0, 3.5]), ("", []), ("1 two 3", []), ("1,,2", [1.0, 2.0])],
)
def test_numbers_are_read_between_spaces_and_commas(text: str, values: list[float]) -> None:
    assert parse_shape(text) == values


def test_a_shape_is_shown_as_it_is_read() -> None:
    shape = [float(hour % 5) for hour in range(24)]

    assert parse_shape(format_shape(shape)) == shape


def test_every_hour_has_a_bar_and_the_most_is_full() -> None:
    picture = draw_shape([1.0] * 23 + [2.0])

    assert picture.count("<i ") == 24
    assert picture.count("height: 50%") == 23
    assert picture.count("height: 100%") == 1


@pytest.mark.parametrize("values", [[], [1.0] * 23, [0.0] * 24])
def test_what_is_no_shape_has_no_picture(values: list[float]) -> None:
    assert draw_shape(values) == ""


def test_a_form_knows_fields_of_objects_within() -> None:
    form = Form({"name": "Here", "pacing": {"warmup": True}})

    assert form.get_initial("pacing.warmup") is True
