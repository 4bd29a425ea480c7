"""Fields for money, with the decimals of the currency; and the order of time zones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.format import format_quantity
from adloom.console.components.forms.checks import INTEGER_MAX, check_natural, check_positive
from adloom.console.components.forms.inputs import (
    NO_AMOUNT,
    check_price,
    count_paisa,
    make_money_check,
    read_amount,
    read_integer,
    write_amount,
)
from adloom.console.components.forms.values import list_zones, offer_zone
from adloom.core.currency import Currency
from tests.support.for_each import for_each


@for_each(
    ("code", "value", "error"),
    [
        ("USD", 12.34, None),
        ("USD", 12.345, "must have at most 2 decimals"),
        ("", 0.001, "must have at most 2 decimals"),
        ("JPY", 1200, None),
        ("JPY", 1200.5, "must be a whole number: JPY has no decimals"),
        ("BHD", 1.25, None),
        ("BHD", 1.255, "must have at most 2 decimals: budgets are kept in hundredths of BHD"),
        ("EUR", -1, "must be from 0 to 1,000,000,000,000"),
        ("EUR", 1e12 + 1, "must be from 0 to 1,000,000,000,000"),
    ],
)
def test_an_amount_has_no_more_decimals_than_its_currency(code: str, value: float, error: str | None) -> None:
    assert make_money_check(Currency(code))(value) == error


def test_an_amount_that_is_given_back_is_more_than_nothing() -> None:
    check = make_money_check(Currency("EUR"), is_positive=True)

    assert (check(0.01), check(0)) == (None, "must be more than 0")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(1234.5, 2, "1234.50"), (1200, 0, "1200"), (1.5, 3, "1.500"), (1.239, 2, "1.239"), (10.5, 0, "10.5")],
)
def test_an_amount_is_shown_with_the_decimals_of_its_currency(value: float, places: int, text: str) -> None:
    assert write_amount(value, places) == text


@for_each(
    ("text", "value"),
    [
        ("12,50", 12.5),
        ("12.50", 12.5),
        ("0,5", 0.5),
        (",5", 0.5),
        ("12,", 12.0),
        ("0,125", 0.125),
        ("1 250,50", 1250.5),
        ("-5", -5.0),
        (" ", None),
    ],
)
def test_an_amount_may_have_a_comma_before_its_decimals(text: str, value: float | None) -> None:
    assert read_amount(text, 2) == value


@for_each("text", ["1,250", "1,250.00", "1.250,00", "abc", "1e5", "nan", ".", "-", "9" * 31, "1,5,0"])
def test_what_is_no_amount_or_may_be_two_is_refused(text: str) -> None:
    assert read_amount(text, 2) == read_amount(text, 4) == text
    assert make_money_check(Currency("EUR"))(text) == check_price(text) == NO_AMOUNT
    assert count_paisa(text) is None


def test_a_point_before_three_digits_is_no_fraction_where_there_are_two_decimals() -> None:
    assert read_amount("1.250", 2) == "1.250"
    assert read_amount("1.250", 3) == read_amount("1.25", 2) == 1.25
    assert read_amount("0.125", 2) == 0.125


@for_each(
    ("text", "value"),
    [
        ("1250", 1250),
        ("1,250", 1250),
        ("10.000", 10000),
        ("1 250 000", 1250000),
        ("-5", -5),
        ("007", 7),
        (" ", None),
    ],
)
def test_a_whole_number_may_have_signs_between_thousands(text: str, value: int | None) -> None:
    assert read_integer(text) == value


@for_each("text", ["10-", "1e5", "1,5", "0.125", "1,250.000", "12,50", "abc", "+5", "²", "9" * 31, "1,2500"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    assert read_integer(text) == text
    assert check_natural(text) == "must be a whole number, 0 or more"


def test_a_number_beyond_what_is_stored_is_refused_by_its_bound() -> None:
    assert (
        check_natural(INTEGER_MAX + 1) == check_positive(INTEGER_MAX + 1) == "must be at most 2,147,483,647"
    )
    assert check_price(1e9 + 1) == "must be at most 1,000,000,000"
    assert check_natural(-1) == "must be a whole number, 0 or more"
    assert (check_natural(0), check_positive(0)) == (None, "must be a whole number, 1 or more")


@given(st.integers(0, 10**12), st.integers(0, 3))
def test_no_amount_is_changed_by_being_shown(paisa: int, places: int) -> None:
    assert count_paisa(read_amount(write_amount(paisa / 100, places), places)) == paisa


@pytest.mark.parametrize(("number", "said"), [(0, "0 clicks"), (1, "1 click"), (1_500, "1,500 clicks")])
def test_one_thing_is_not_many(number: int, said: str) -> None:
    assert format_quantity(number, "click") == said


def test_zones_are_found_by_any_part_of_their_name_and_those_of_most_people_come_first() -> None:
    def find(text: str) -> list[str]:
        return [name for name, label in list_zones().items() if text in label.lower()]

    assert find("ber")[0] == "Europe/Berlin"
    assert find("new york") == ["America/New_York"]
    assert next(iter(list_zones())) == "UTC"
    assert list(offer_zone("US/Pacific"))[:2] == ["US/Pacific", "UTC"]
    assert offer_zone(None) == offer_zone("Asia/Tokyo") == list_zones()
