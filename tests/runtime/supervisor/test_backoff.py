"""When a process that died is started again."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.supervisor.child import (
    LIVED_LONG_SECONDS,
    SECONDS_MAX,
    deaths_in_a_row,
    restart_delay_seconds,
)

death_counts = st.integers(min_value=1, max_value=10_000_000)


def test_the_first_death_is_mended_at_once() -> None:
    assert restart_delay_seconds(1) == 0.0


def test_each_further_death_doubles_the_wait() -> None:
    assert [restart_delay_seconds(deaths) for deaths in (2, 3, 4)] == [0.2, 0.4, 0.8]


@given(death_counts)
def test_the_wait_never_shrinks_and_has_a_bound(deaths: int) -> None:
    assert restart_delay_seconds(deaths) <= restart_delay_seconds(deaths + 1) <= SECONDS_MAX


@given(death_counts)
def test_a_long_life_makes_earlier_deaths_forgotten(before: int) -> None:
    assert deaths_in_a_row(before, lived_seconds=LIVED_LONG_SECONDS) == 1


@given(death_counts)
def test_a_short_life_counts_one_more(before: int) -> None:
    assert deaths_in_a_row(before, lived_seconds=LIVED_LONG_SECONDS - 0.001) == before + 1
