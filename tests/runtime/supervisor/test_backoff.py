"""The delay before a dead process is restarted."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.supervisor.child import (
    LIVED_LONG_SECONDS,
    SECONDS_MAX,
    count_deaths_in_a_row,
    restart_delay_seconds,
)

death_counts = st.integers(min_value=1, max_value=10_000_000)


def test_the_first_death_is_followed_by_an_immediate_restart() -> None:
    assert restart_delay_seconds(1) == 0.0


def test_each_further_death_doubles_the_delay() -> None:
    assert [restart_delay_seconds(deaths) for deaths in (2, 3, 4)] == [0.2, 0.4, 0.8]


@given(death_counts)
def test_the_delay_never_shrinks_and_is_bounded(deaths: int) -> None:
    assert restart_delay_seconds(deaths) <= restart_delay_seconds(deaths + 1) <= SECONDS_MAX


@given(death_counts)
def test_a_long_run_resets_the_count_of_deaths(before: int) -> None:
    assert count_deaths_in_a_row(before, lived_seconds=LIVED_LONG_SECONDS) == 1


@given(death_counts)
def test_a_short_run_adds_a_death(before: int) -> None:
    assert count_deaths_in_a_row(before, lived_seconds=LIVED_LONG_SECONDS - 0.001) == before + 1
