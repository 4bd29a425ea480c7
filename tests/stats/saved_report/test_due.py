"""When a report is due: once on each of its days, at its hour, also where clocks are put forward or back."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.stats.saved_report.period import (
    SendEvery,
    SendSchedule,
    find_latest_due,
    find_next_due,
)

# Half hours and quarters, both hemispheres, midnight that is skipped, and the far ends.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
)
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2029, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds it
SCHEDULES = st.builds(
    SendSchedule,
    every=st.sampled_from(SendEvery),
    weekday=st.integers(1, 7),
    hour=st.integers(0, 23),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
)


def schedule(every: SendEvery = SendEvery.DAILY, *, hour: int = 8, zone: str = "UTC") -> SendSchedule:
    return SendSchedule(every=every, weekday=1, hour=hour, zone=ZoneInfo(zone))


@given(SCHEDULES, MOMENTS)
def test_now_is_between_the_last_due_and_the_next(plan: SendSchedule, now: datetime) -> None:
    last, following = find_latest_due(plan, now), find_next_due(plan, now)

    assert last.at <= now < following.at
    assert last.on < following.on
    assert find_latest_due(plan, last.at) == last
    assert find_next_due(plan, following.at - timedelta(microseconds=1)) == following
    # Nothing is due between them.
    assert find_next_due(plan, last.at) == following


@given(SCHEDULES, MOMENTS)
def test_it_is_due_at_its_hour_or_where_that_is_skipped_just_after(plan: SendSchedule, now: datetime) -> None:
    due = find_next_due(plan, now)
    local = due.at.astimezone(plan.zone)

    assert plan.is_on(due.on)
    assert local.date() == due.on
    late = (local.hour - plan.hour) * 60 + local.minute
    is_there = late == 0
    wall = datetime(due.on.year, due.on.month, due.on.day, plan.hour, tzinfo=plan.zone)
    exists = wall.astimezone(UTC).astimezone(plan.zone).replace(tzinfo=None) == wall.replace(tzinfo=None)
    assert is_there == exists
    assert 0 <= late <= 60


@given(SCHEDULES, st.integers(2024, 2028))
def test_a_year_has_each_of_its_days_once(plan: SendSchedule, year: int) -> None:
    found: list[date] = []
    now = datetime(year, 1, 1, tzinfo=plan.zone).astimezone(UTC) - timedelta(microseconds=1)
    while (due := find_next_due(plan, now)).on.year == year:
        found.append(due.on)
        now = due.at

    days = [date(year, 1, 1) + timedelta(days=number) for number in range(366)]
    assert found == [day for day in days if day.year == year and plan.is_on(day)]


@pytest.mark.parametrize(
    ("plan", "now", "on", "at"),
    [
        # Berlin puts its clocks forward at two, and back at three.
        (schedule(hour=2, zone="Europe/Berlin"), "2026-03-28T12:00", "2026-03-29", "2026-03-29T01:00"),
        (schedule(hour=2, zone="Europe/Berlin"), "2026-10-24T12:00", "2026-10-25", "2026-10-25T00:00"),
        (schedule(SendEvery.WEEKLY), "2026-11-17T12:00", "2026-11-23", "2026-11-23T08:00"),
        (schedule(SendEvery.MONTHLY), "2026-12-01T08:00", "2027-01-01", "2027-01-01T08:00"),
        (schedule(zone="Pacific/Auckland"), "2026-11-17T12:00", "2026-11-18", "2026-11-17T19:00"),
    ],
)
def test_examples(plan: SendSchedule, now: str, on: str, at: str) -> None:
    due = find_next_due(plan, datetime.fromisoformat(f"{now}:00+00:00"))

    assert (due.on, due.at) == (date.fromisoformat(on), datetime.fromisoformat(f"{at}:00+00:00"))
