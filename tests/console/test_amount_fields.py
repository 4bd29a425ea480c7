"""Fields for money, with the decimals of the currency; and the order of time zones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.forms.amounts import make_money_check, write_amount
from adloom.console.components.forms.zones import list_zones, offer_zone
from adloom.core.currency import Currency


@pytest.mark.parametrize(
    ("code", "value", "error"),
    [
        ("USD", 12.34, None),
        ("USD", 12.345, "must have at most 2 decimals"),
        ("", 0.001, "must have at most 2 decimals"),
        ("JPY", 1200, None),
        ("JPY", 1200.5, "must be a whole number: JPY has no decimals"),
        ("BHD", 1.25, None),
        ("BHD", 1.255, "must have at most 2 decimals: budgets are kept in hundredths of BHD"),
        ("EUR", -1, "must be 0 or more"),
    ],
)
def test_an_amount_has_no_more_decimals_than_its_currency(code: str, value: float, error: str | None) -> None:
    assert make_money_check(Currency(code))(value) == error


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(1234.5, 2, "1234.50"), (1200, 0, "1200"), (1.5, 3, "1.500"), (1.239, 2, "1.239"), (10.5, 0, "10.5")],
)
def test_an_amount_is_shown_with_the_decimals_of_its_currency(value: float, places: int, text: str) -> None:
    assert write_amount(value, places) == text


@given(st.integers(0, 10**12), st.integers(0, 3))
def test_no_amount_is_changed_by_being_shown(paisa: int, places: int) -> None:
    assert round(float(write_amount(paisa / 100, places)) * 100) == paisa


def test_zones_are_found_by_any_part_of_their_name_and_those_of_most_people_come_first() -> None:
    def find(text: str) -> list[str]:
        return [name for name, label in list_zones().items() if text in label.lower()]

    assert find("ber")[0] == "Europe/Berlin"
    assert find("new york") == ["America/New_York"]
    assert next(iter(list_zones())) == "UTC"
    assert list(offer_zone("US/Pacific"))[:2] == ["US/Pacific", "UTC"]
    assert offer_zone(None) == offer_zone("Asia/Tokyo") == list_zones()
