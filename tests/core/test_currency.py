"""Money as people write it, in the currency of the installation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.currency import PLACES, SYMBOLS, Currency
from tests.support.for_each import for_each


@for_each(
    ("code", "paisa", "written"),
    [
        ("EUR", 123456, "€1,234.56"),
        ("USD", 5, "$0.05"),
        ("JPY", 123456, "¥1,235"),
        ("KWD", 150, "KWD\u00a01.500"),
        ("CHF", 100, "CHF\u00a01.00"),
        ("PLN", 100, "zł\u00a01.00"),
        ("", 123456, "1,234.56"),
        ("EUR", -150, "-€1.50"),
        ("JPY", -10, "¥0"),
    ],
)
def test_hundredths_are_written_with_symbol_and_decimals(code: str, paisa: int, written: str) -> None:
    assert Currency(code).write_paisa(paisa) == written


@pytest.mark.parametrize(
    ("code", "amount", "written"),
    [("EUR", 2.5, "€2.50"), ("EUR", 0.0125, "€0.0125"), ("JPY", 12.5, "¥12.5"), ("JPY", 12.0, "¥12")],
)
def test_a_price_has_more_decimals_where_it_needs_them(code: str, amount: float, written: str) -> None:
    assert Currency(code).write_price(amount) == written


@given(st.sampled_from(["", "XTS", *PLACES, *SYMBOLS]), st.integers(0, 10**12))
def test_what_is_written_can_be_read_again(code: str, paisa: int) -> None:
    currency = Currency(code)

    digits = currency.write_paisa(paisa).removeprefix(currency.symbol).replace(",", "")

    assert abs(float(digits) - paisa / 100) <= 0.5
    assert len(digits.partition(".")[2]) == currency.places
