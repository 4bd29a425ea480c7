"""A budget day lasts from midnight to midnight in its account's time zone, also when clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from adloom.schedule.budget_day import build_budget_day, find_budget_day
from tests.schedule.builders import NOON
from tests.support.for_each import for_each

# Ordinary zones; zones that change at midnight, after it, or by half an hour; a zone that skipped a day.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)
moments = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone
zones = st.sampled_from(ZONES)


@for_each(
    ("zone", "day", "hours"),
    [
        ("UTC", date(2026, 11, 15), 24),
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),  # There is no midnight.
        ("America/Sao_Paulo", date(2018, 2, 17), 25),  # The hour before midnight comes twice.
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Pacific/Apia", date(2011, 12, 30), 0),  # The zone skipped this day.
    ],
)
def test_a_day_is_shorter_or_longer_when_clocks_change(zone: str, day: date, hours: float) -> None:
    found = build_budget_day(day, zone)

    assert found.ends_at - found.starts_at == timedelta(hours=hours)
    assert found.length_micros == hours * 3_600_000_000


def test_a_day_without_midnight_begins_after_the_skipped_hour() -> None:
    day = build_budget_day(date(2018, 11, 4), "America/Sao_Paulo")

    assert day.starts_at == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert day.starts_at.astimezone(ZoneInfo("America/Sao_Paulo")).hour == 1


def test_a_clock_that_is_set_back_over_midnight_does_not_return_to_yesterday() -> None:
    first_midnight = datetime(2006, 10, 29, 2, 30, tzinfo=UTC)
    set_back = first_midnight + timedelta(minutes=2)
    assert set_back.astimezone(ZoneInfo("America/St_Johns")).date() == date(2006, 10, 28)

    assert find_budget_day(set_back, "America/St_Johns").day == date(2006, 10, 29)


@given(moments, zones)
def test_every_moment_belongs_to_one_day(now: datetime, zone: str) -> None:
    day = find_budget_day(now, zone)

    assert day.starts_at <= now < day.ends_at
    assert 0 <= day.compute_elapsed_micros(now) < day.length_micros


@given(moments, zones, st.timedeltas(timedelta(), timedelta(days=3)))
def test_days_never_go_back(now: datetime, zone: str, later: timedelta) -> None:
    assert find_budget_day(now + later, zone).day >= find_budget_day(now, zone).day


@given(moments, zones)
def test_days_follow_each_other_without_gaps(now: datetime, zone: str) -> None:
    day = find_budget_day(now, zone)

    assert build_budget_day(day.day + timedelta(days=1), zone).starts_at == day.ends_at
    assert find_budget_day(day.ends_at, zone).starts_at == day.ends_at


def test_the_elapsed_time_is_between_zero_and_the_length_of_the_day() -> None:
    day = find_budget_day(NOON, "UTC")

    assert day.compute_elapsed_micros(day.starts_at - timedelta(hours=1)) == 0
    assert day.compute_elapsed_micros(NOON) * 2 == day.length_micros
    assert day.compute_elapsed_micros(day.ends_at + timedelta(hours=1)) == day.length_micros


def test_an_unknown_zone_counts_as_utc() -> None:
    assert find_budget_day(NOON, "Atlantis/Capital") == find_budget_day(NOON, "UTC")
