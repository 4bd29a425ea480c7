"""The simulated readers come by the hour of a magazine, and briskly at first."""

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
    busyness,
    seconds_to_next,
    visits_per_second,
)
from tests.sample.builders import a_chance

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - they get one


def test_a_day_has_as_many_readers_as_its_mean_says() -> None:
    assert math.isclose(sum(BY_HOUR), 24, abs_tol=0.01)


def test_the_evening_is_busier_than_the_night() -> None:
    assert busyness(MONDAY.replace(hour=20)) > 8 * busyness(MONDAY.replace(hour=3))


def test_a_sunday_is_busier_than_a_monday() -> None:
    assert busyness(MONDAY.replace(hour=15) - timedelta(days=1)) > busyness(MONDAY.replace(hour=15))


@given(moments)
def test_it_never_changes_at_once(moment: datetime) -> None:
    later = moment + timedelta(seconds=1)
    is_midnight = (
        later.date() != moment.date()
        or (later + timedelta(hours=1)).date() != (moment + timedelta(hours=1)).date()
    )

    assert is_midnight or abs(busyness(later) - busyness(moment)) < 0.001


@given(moments)
def test_there_is_always_somebody(moment: datetime) -> None:
    rate = visits_per_second(moment, loaded_at=moment - timedelta(days=1))

    assert 0 < rate < 4 * VISITS_PER_SECOND


def test_the_first_minutes_are_brisk() -> None:
    assert visits_per_second(MONDAY, loaded_at=MONDAY) == BRISK_VISITS_PER_SECOND
    assert visits_per_second(MONDAY + 3 * BRISK, loaded_at=MONDAY) == BRISK_VISITS_PER_SECOND / 4
    assert visits_per_second(MONDAY + 20 * BRISK, loaded_at=MONDAY) < VISITS_PER_SECOND


@given(st.floats(0.001, 10), st.randoms())
def test_the_next_reader_comes_within_a_minute(rate: float, chance: random.Random) -> None:
    assert 0 <= seconds_to_next(rate, chance) <= WAIT_SECONDS_MAX


def test_readers_come_as_often_as_the_rate_says() -> None:
    chance = a_chance()

    waits = [seconds_to_next(2.0, chance) for _ in range(5_000)]

    assert math.isclose(sum(waits) / len(waits), 0.5, rel_tol=0.1)
