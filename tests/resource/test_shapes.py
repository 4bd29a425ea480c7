"""Prices, budgets and times of day, as they come in and as they go out."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from adloom.core.money import Micros, micros_from_decimal
from adloom.resource.shapes import PRICE_MAX, Domain, Price, PriceShown, TimeOfDay, TimeZone
from tests.support.for_each import for_each

read_price = TypeAdapter[Micros](Price).validate_python
write_price = TypeAdapter[Micros](PriceShown).dump_json
prices = st.decimals(min_value=0, max_value=PRICE_MAX, places=4)


@given(prices)
def test_a_price_is_returned_as_it_was_given(price: Decimal) -> None:
    micros = read_price(float(price))

    assert micros == micros_from_decimal(price)
    assert Decimal(write_price(micros).decode()) == price


@given(st.integers(min_value=0, max_value=PRICE_MAX))
def test_an_integer_price_is_accepted(price: int) -> None:
    assert read_price(price) == price * 1_000_000


@given(prices, st.integers(min_value=1, max_value=9))
def test_a_fifth_decimal_place_is_refused(price: Decimal, digit: int) -> None:
    with pytest.raises(ValidationError):
        read_price(float(price % 1_000_000 + Decimal(digit) / 100_000))


@for_each(
    "value",
    [-1, -0.0001, PRICE_MAX + 1, 1e300, 10**400, float("nan"), float("inf"), True, "1.5", None, [1], {}],
)
def test_an_invalid_price_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        read_price(value)


@pytest.mark.parametrize(
    ("text", "written"),
    [("09:30", "09:30:00"), ("00:00", "00:00:00"), ("23:59:59", "23:59:59"), ("05:06:07", "05:06:07")],
)
def test_a_time_of_day_has_minutes_or_seconds(text: str, written: str) -> None:
    assert TypeAdapter[Any](TimeOfDay).validate_python(text).isoformat() == written


@for_each(
    "value",
    ["9:30", "24:00", "09:60", "09:30:60", "09:30Z", "09:30:00.5", "0930", "٠٩:٣٠", "09:30\n", 930, None],
)
def test_an_invalid_time_of_day_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[Any](TimeOfDay).validate_python(value)


@for_each(
    "name",
    ["", "Mars/Olympus", "../etc/passwd", "/usr/share/zoneinfo/UTC", "Europe", "a\0b", "UTC\n", "\ud800"],
)
def test_an_invalid_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter[Any](TimeZone).validate_python(name)


@given(st.text(max_size=300))
def test_a_domain_is_normalized_or_refused(text: str) -> None:
    read = TypeAdapter[str](Domain).validate_python
    try:
        domain = read(text)
    except ValidationError:
        return

    assert domain == domain.lower() == read(domain)
    assert domain.isascii()
    assert "." in domain
