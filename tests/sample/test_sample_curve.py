"""The rate of simulated visitors: by hour and day, and higher in the first minutes."""

import math
import random
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.sample.visitors.visitors import (
    BRISK,
    BRISK_VISITS_PER_SECOND,
    BY_HOUR,
    VISITS_PER_SECOND,
    WAIT_SECONDS_MAX,
    compute_busyness,
    compute_visits_per_second,
    draw_seconds_to_next,
)
from tests.sample.builders import a_chance

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone


def test_the_factors_of_the_hours_have_a_mean_of_one() -> None:
    assert math.isclose(sum(BY_HOUR), 24, abs_tol=0.01)


def test_the_evening_is_busier_than_the_night() -> None:
    assert compute_busyness(MONDAY.replace(hour=20)) > 8 * compute_busyness(MONDAY.replace(hour=3))


def test_a_sunday_is_busier_than_a_monday() -> None:
    assert compute_busyness(MONDAY.replace(hour=15) - timedelta(days=1)) > compute_busyness(
        MONDAY.replace(hour=15)
    )


@given(moments)
def test_the_rate_changes_gradually_except_at_midnight(moment: datetime) -> None:
    later = moment + timedelta(seconds=1)
    is_midnight = (
        later.date() != moment.date()
        or (later + timedelta(hours=1)).date() != (moment + timedelta(hours=1)).date()
    )

    assert is_midnight or abs(compute_busyness(later) - compute_busyness(moment)) < 0.001


@given(moments)
def test_the_rate_is_always_above_zero_and_bounded(moment: datetime) -> None:
    rate = compute_visits_per_second(moment, loaded_at=moment - timedelta(days=1))

    assert 0 < rate < 4 * VISITS_PER_SECOND


def test_the_rate_is_high_in_the_first_minutes_and_falls() -> None:
    assert compute_visits_per_second(MONDAY, loaded_at=MONDAY) == BRISK_VISITS_PER_SECOND
    assert compute_visits_per_second(MONDAY + 3 * BRISK, loaded_at=MONDAY) == BRISK_VISITS_PER_SECOND / 4
    assert compute_visits_per_second(MONDAY + 20 * BRISK, loaded_at=MONDAY) < VISITS_PER_SECOND


@given(st.floats(0.001, 10), st.randoms())
def test_the_wait_for_the_next_visitor_is_bounded(rate: float, chance: random.Random) -> None:
    assert 0 <= draw_seconds_to_next(rate, chance) <= WAIT_SECONDS_MAX


def test_visitors_come_at_the_given_rate() -> None:
    chance = a_chance()

    waits = [draw_seconds_to_next(2.0, chance) for _ in range(5_000)]

    assert math.isclose(sum(waits) / len(waits), 0.5, rel_tol=0.1)
