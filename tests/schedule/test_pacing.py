"""The allowance under which spend stays: `daily budget * min(1, max(1/24, 1.2 * elapsed share of the day))`."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import Micros
from adloom.schedule.budget_day import BudgetDay, build_budget_day, find_budget_day
from adloom.schedule.pacing import PacingStrategy, compute_allowance
from tests.schedule.builders import NOON
from tests.support.for_each import for_each

TODAY = find_budget_day(NOON, "UTC")
budgets = st.integers(0, 10**15).map(Micros)
DAYS = (
    TODAY,
    build_budget_day(date(2026, 3, 29), "Europe/Berlin"),
    build_budget_day(date(2026, 10, 25), "Europe/Berlin"),
    build_budget_day(date(2018, 11, 4), "America/Sao_Paulo"),
)


def smooth(now: datetime, daily_budget: int, day: BudgetDay = TODAY) -> int:
    return compute_allowance(now, strategy=PacingStrategy.SMOOTH, daily_budget=Micros(daily_budget), day=day)


def at(hours: float, day: BudgetDay = TODAY) -> datetime:
    return day.starts_at + timedelta(hours=hours)


@for_each(
    ("hours", "spendable"),
    [
        (0, 1_000),  # An hour's worth.
        (0.5, 1_000),
        (20 / 24, 1_000),
        (1, 1_200),
        (6, 7_200),
        (12, 14_400),
        (19, 22_800),
        (20, 24_000),
        (23, 24_000),
    ],
)
def test_a_smooth_allowance_is_a_fifth_ahead_of_the_clock(hours: float, spendable: int) -> None:
    assert smooth(at(hours), 24_000) == spendable


@pytest.mark.parametrize(("day", "hours"), [(DAYS[1], 23), (DAYS[2], 25), (DAYS[3], 23)])
def test_the_elapsed_share_uses_the_length_of_that_day(day: BudgetDay, hours: int) -> None:
    assert smooth(at(hours / 2, day), 1_000_000, day) == 600_000
    assert smooth(at(hours / 1.2, day), 1_000_000, day) == 1_000_000
    assert smooth(at(hours / 1.2 - 0.001, day), 1_000_000, day) < 1_000_000


@given(budgets, st.integers(0, 25 * 3_600_000_000), st.sampled_from(DAYS))
def test_the_allowance_is_exactly_the_formula_rounded_down(
    budget: Micros, micros: int, day: BudgetDay
) -> None:
    now = day.starts_at + timedelta(microseconds=micros)
    share = Fraction(min(micros, day.length_micros), day.length_micros)

    exact = budget * min(Fraction(1), max(Fraction(1, 24), Fraction(12, 10) * share))

    assert smooth(now, budget, day) == exact.__floor__()


@given(budgets, st.integers(0, 90_000), st.integers(0, 90_000))
def test_the_allowance_never_falls(budget: Micros, earlier: int, later: int) -> None:
    first, second = sorted((earlier, later))

    allowance = smooth(TODAY.starts_at + timedelta(seconds=first), budget)

    assert 0 <= allowance <= smooth(TODAY.starts_at + timedelta(seconds=second), budget) <= budget


@given(budgets)
def test_an_accelerated_budget_may_be_spent_from_the_start_of_the_day(budget: Micros) -> None:
    assert (
        compute_allowance(
            TODAY.starts_at, strategy=PacingStrategy.ACCELERATED, daily_budget=budget, day=TODAY
        )
        == budget
    )


def test_a_time_outside_the_day_counts_as_its_start_or_its_end() -> None:
    assert smooth(TODAY.starts_at - timedelta(hours=5), 24_000) == 1_000
    assert smooth(TODAY.ends_at + timedelta(hours=5), 24_000) == 24_000


def test_a_day_that_the_zone_skips_is_over_when_it_begins() -> None:
    day = build_budget_day(date(2011, 12, 30), "Pacific/Apia")

    assert smooth(datetime(2011, 12, 30, 10, tzinfo=UTC), 24_000, day) == 24_000
    assert smooth(datetime(2011, 12, 30, 9, tzinfo=UTC), 24_000, day) == 1_000
