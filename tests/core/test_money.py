"""Money: conversions lose nothing, and roundings go the way they are named."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import (
    IMPRESSIONS_PER_CPM,
    Micros,
    decimal_from_micros,
    impression_cost,
    micros_from_decimal,
    micros_from_paisa,
    paisa_from_micros,
)

amounts = st.decimals(min_value=0, max_value=10**9, places=4)
paisas = st.integers(0, 10**15)


@given(paisas)
def test_hundredths_come_back_as_they_were(paisa: int) -> None:
    assert paisa_from_micros(micros_from_paisa(paisa)) == paisa


@given(amounts)
def test_amounts_with_four_places_come_back_as_they_were(amount: Decimal) -> None:
    assert decimal_from_micros(micros_from_decimal(amount)) == amount


def test_an_amount_with_more_places_is_a_mistake_of_the_edge() -> None:
    with pytest.raises(AssertionError):
        micros_from_decimal(Decimal("0.0000001"))


@given(st.integers(0, 10**12))
def test_a_thousand_impressions_cost_at_least_their_price_and_less_than_a_thousandth_more(cpm: int) -> None:
    cost = impression_cost(Micros(cpm)) * IMPRESSIONS_PER_CPM

    assert cpm <= cost < cpm + IMPRESSIONS_PER_CPM


@given(st.integers(0, 10**12))
def test_what_is_shown_as_spent_was_spent_in_full(micros: int) -> None:
    assert micros_from_paisa(paisa_from_micros(Micros(micros))) <= micros
