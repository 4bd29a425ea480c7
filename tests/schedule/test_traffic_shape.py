from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.traffic_shape import (
    FLAT,
    SATURDAY,
    LearnedShape,
    TrafficShape,
    blend_day,
    build_day_curve,
    learn_hour,
    start_learning,
)

TUESDAY = datetime(2026, 11, 17, tzinfo=UTC)
HOURS = tuple({3: 0.2, 10: 3.0}.get(hour, 1.0) for hour in range(24))
SHAPES = st.builds(
    TrafficShape,
    *[st.lists(st.floats(0, 10), min_size=24, max_size=24).map(tuple)] * 2,
    timezone=st.sampled_from(
        ["UTC", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe", "gone/zone"]
    ),
)


def test_the_share_grows_linearly_within_an_hour() -> None:
    curve = build_day_curve(TrafficShape(HOURS, FLAT), TUESDAY, TUESDAY + timedelta(days=1))
    assert curve.compute_share(TUESDAY + timedelta(hours=10, minutes=30)) == pytest.approx(0.4246, abs=1e-4)
    assert curve.compute_share(TUESDAY + timedelta(hours=12)) == pytest.approx(0.52381, abs=1e-5)
    assert curve.get_volume(TUESDAY + timedelta(hours=10)) == pytest.approx(2.8571, abs=1e-4)


@example(
    shape=TrafficShape((0.0,) * 23 + (1.671875,), (0.0,) * 12 + (6.0, 2.0, 2.0, 2.0) + (0.0,) * 8),
    day=date(2026, 7, 25),
    zone="Europe/Berlin",
    at=[0.75, 1.0],
)
@given(
    shape=SHAPES,
    day=st.dates(date(2026, 3, 1), date(2026, 11, 30)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Santiago"]),
    at=st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=20),
)
def test_the_share_of_a_day_goes_from_nothing_to_all_and_never_back(
    shape: TrafficShape, day: date, zone: str, at: list[float]
) -> None:
    budget_day = build_budget_day(day, zone)
    curve = build_day_curve(shape, budget_day.starts_at, budget_day.ends_at)
    length = budget_day.ends_at - budget_day.starts_at
    shares = [curve.compute_share(budget_day.starts_at + length * part) for part in sorted(at)]
    assert shares == sorted(shares)
    assert curve.compute_share(budget_day.starts_at) == 0
    assert curve.compute_share(budget_day.ends_at) == 1


@given(
    shape=SHAPES,
    day=st.dates(date(2026, 3, 1), date(2026, 11, 30)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    day_seconds=st.integers(60, 86_399),
    at=st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=20),
)
def test_so_it_does_where_days_are_simulated(
    shape: TrafficShape, day: date, zone: str, day_seconds: int, at: list[float]
) -> None:
    budget_day = build_budget_day(day, zone)
    simulated = msgspec.structs.replace(shape, day_seconds=day_seconds)
    curve = build_day_curve(simulated, budget_day.starts_at, budget_day.ends_at)
    length = budget_day.ends_at - budget_day.starts_at
    shares = [curve.compute_share(budget_day.starts_at + length * part) for part in sorted(at)]
    assert shares == sorted(shares)
    assert curve.compute_share(budget_day.starts_at) == 0
    assert curve.compute_share(budget_day.ends_at) == 1
    assert all(curve.get_volume(budget_day.starts_at + length * part) >= 0 for part in at)


def test_each_simulated_day_has_its_part_along_its_own_shape() -> None:
    curve = build_day_curve(TrafficShape(HOURS, FLAT, "UTC", 600), TUESDAY, TUESDAY + timedelta(days=1))
    at = TUESDAY + timedelta(seconds=7 * 600)
    assert curve.compute_share(at) * 144 == pytest.approx(7)
    assert curve.compute_share(at + timedelta(seconds=10.5 * 25)) * 144 == pytest.approx(7.4246, abs=1e-4)
    assert curve.get_volume(at + timedelta(seconds=260)) == pytest.approx(2.8571, abs=1e-4)


def test_the_hours_are_those_of_the_shape_s_own_zone() -> None:
    only_noon = tuple(float(hour == 12) for hour in range(24))
    shape = TrafficShape(only_noon, only_noon, "Asia/Kolkata")
    curve = build_day_curve(shape, TUESDAY, TUESDAY + timedelta(days=1))
    assert curve.compute_share(TUESDAY + timedelta(hours=6, minutes=30)) == 0
    assert curve.compute_share(TUESDAY + timedelta(hours=7)) == pytest.approx(0.5)
    assert curve.compute_share(TUESDAY + timedelta(hours=7, minutes=30)) == 1


def test_weekends_have_a_shape_of_their_own() -> None:
    shape = TrafficShape(FLAT, HOURS)
    saturday = TUESDAY + timedelta(days=4)
    assert build_day_curve(shape, saturday, saturday + timedelta(days=1)).get_volume(
        saturday + timedelta(hours=10)
    ) == pytest.approx(2.8571, abs=1e-4)


def test_what_people_say_is_where_learning_starts() -> None:
    learned = start_learning(HOURS, None)
    assert learned.weekday[10] == pytest.approx(2.8571, abs=1e-4)
    assert learned.weekend == FLAT


def test_a_day_moves_the_shape_by_a_fifth() -> None:
    assert blend_day(FLAT, [2 * 100, *[100] * 22, 0])[0] == pytest.approx(1.2)


def _learn(learned: LearnedShape, day: int, hour: int, requests: int) -> LearnedShape:
    on = TUESDAY + timedelta(days=day)
    seconds, is_weekend = int(on.timestamp()), on.weekday() >= SATURDAY
    return learn_hour(learned, day=seconds, is_weekend=is_weekend, hour=hour, requests=requests)


def _learn_days(learned: LearnedShape, days: int, counts: tuple[int, ...]) -> LearnedShape:
    for day in range(days):
        for hour, count in enumerate(counts):
            learned = _learn(learned, day, hour, count)
    return learned


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("growth", [0.97, 1.0, 1.03])
def test_a_shape_is_learned_in_two_weeks(first: int, growth: float) -> None:
    """Within 5 % in each hour of weekdays and weekends, whatever day it begins on, and if traffic grows by the day."""
    weekday = (*[0.2] * 6, 0.5, 0.8, *[1.3] * 10, 1.8, 1.9, 1.7, 1.2, 0.8, 0.4)
    weekend = (*[0.4] * 9, *[1.0] * 4, *[1.4] * 9, 1.0, 0.6)
    learned = start_learning(None, None)
    for day in range(first, first + 15):
        is_weekend = (TUESDAY + timedelta(days=day)).weekday() >= SATURDAY
        for hour, volume in enumerate(weekend if is_weekend else weekday):
            if day < first + 14 or hour == 0:
                learned = _learn(learned, day, hour, round(1_000 * growth**day * volume))

    for hours, true in ((learned.weekday, weekday), (learned.weekend, weekend)):
        volumes = [hour * 24 / sum(hours) for hour in hours]
        assert volumes == pytest.approx([hour * 24 / sum(true) for hour in true], rel=0.05)


def test_little_traffic_changes_a_shape_slowly() -> None:
    """Of a few visitors it is chance when they came."""
    learned = _learn(_learn_days(start_learning(None, None), 1, (*[0] * 23, 24)), 1, 0, 0)

    assert learned.weekday[0] == pytest.approx(0.8)


def test_what_an_older_version_has_learned_goes_on() -> None:
    hours = [0.5] * 12 + [1.5] * 12
    stored = {"weekday": hours, "weekend": hours, "hour_average": 7.5, "counts": [3, 4], "day": 0}

    learned = msgspec.convert(stored, LearnedShape)

    assert learned.weekday == tuple(hours)
    assert _learn(learned, 0, 2, 5).weekday == tuple(hours)


def test_an_hour_that_was_learned_before_changes_nothing() -> None:
    learned = _learn_days(LearnedShape(), 2, tuple(range(24)))
    assert _learn(learned, 1, 23, 9_999) == learned
    assert _learn(learned, 0, 5, 9_999) == learned


def test_a_day_that_was_not_seen_whole_is_not_blended() -> None:
    learned = _learn(_learn(LearnedShape(), 0, 22, 10), 1, 0, 10)
    assert learned.counts == (10,)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
def test_a_learned_shape_is_never_negative_nor_all_nothing(counts: list[int]) -> None:
    learned = LearnedShape()
    for number, count in enumerate(counts):
        learned = _learn(learned, number // 24, number % 24, count)
    for hours in (learned.weekday, learned.weekend):
        assert min(hours) >= 0
        assert sum(hours) > 0
