"""Money: conversions lose nothing, and each rounding goes in the direction of its name."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import (
    IMPRESSIONS_PER_CPM,
    Micros,
    decimal_from_micros,
    micros_from_decimal,
    micros_from_paisa,
    paisa_from_micros,
    price_impression,
    split_paisa,
)

amounts = st.decimals(min_value=0, max_value=10**9, places=4)
paisas = st.integers(0, 10**15)


@given(paisas)
def test_paisa_convert_to_micros_and_back_without_loss(paisa: int) -> None:
    assert paisa_from_micros(micros_from_paisa(paisa)) == paisa


@given(amounts)
def test_amounts_with_four_decimals_convert_to_micros_and_back_without_loss(amount: Decimal) -> None:
    assert decimal_from_micros(micros_from_decimal(amount)) == amount


def test_an_amount_with_more_than_six_decimals_is_refused() -> None:
    with pytest.raises(AssertionError):
        micros_from_decimal(Decimal("0.0000001"))


@given(st.integers(0, 10**12))
def test_the_cost_of_an_impression_is_rounded_up_by_less_than_a_micro(cpm: int) -> None:
    cost = price_impression(Micros(cpm)) * IMPRESSIONS_PER_CPM

    assert cpm <= cost < cpm + IMPRESSIONS_PER_CPM


@given(st.integers(0, 10**12))
def test_micros_are_rounded_down_to_paisa(micros: int) -> None:
    assert micros_from_paisa(paisa_from_micros(Micros(micros))) <= micros


@given(st.lists(st.integers(-(10**9), 10**9).map(Micros), max_size=30))
def test_hundredths_that_were_split_add_up_and_are_less_than_one_away(amounts: list[Micros]) -> None:
    parts = split_paisa(amounts)

    assert sum(parts) == paisa_from_micros(Micros(sum(amounts)))
    for part, amount in zip(parts, amounts, strict=True):
        assert abs(micros_from_paisa(part) - amount) < micros_from_paisa(1)
