"""The windows of frequency caps: every moment in one bucket of each, which ends when the calendar says."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.frequency.windows import (
    KEPT_AFTER_END,
    LIFETIME_KEPT,
    Window,
    find_live_start,
    list_buckets,
    list_live_buckets,
)

MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - naive by the strategy's wish
CALENDAR = (Window.HOUR, Window.DAY, Window.WEEK, Window.MONTH)
A_MICROSECOND = timedelta(microseconds=1)


def names(moment: datetime) -> dict[Window, str]:
    return {bucket.window: bucket.name for bucket in list_buckets(moment)}


def end(moment: datetime, window: Window) -> datetime:
    [bucket] = [one for one in list_buckets(moment) if one.window is window]
    return datetime.fromtimestamp(bucket.expires_at, UTC) - KEPT_AFTER_END


def test_a_moment_has_a_bucket_in_each_window() -> None:
    assert names(datetime(2026, 11, 15, 12, 34, 56, tzinfo=UTC)) == {
        Window.HOUR: "2026-11-15T12",
        Window.DAY: "2026-11-15",
        Window.WEEK: "2026-W46",
        Window.MONTH: "2026-11",
        Window.LIFETIME: "all",
    }


@pytest.mark.parametrize(
    ("moment", "week", "month"),
    [
        (datetime(2027, 1, 3, 23, 59, 59, tzinfo=UTC), "2026-W53", "2027-01"),
        (datetime(2027, 1, 4, tzinfo=UTC), "2027-W01", "2027-01"),
        (datetime(2024, 12, 30, tzinfo=UTC), "2025-W01", "2024-12"),
        (datetime(2028, 2, 29, tzinfo=UTC), "2028-W09", "2028-02"),
    ],
)
def test_weeks_are_iso_8601_weeks_also_around_new_year(moment: datetime, week: str, month: str) -> None:
    assert names(moment)[Window.WEEK] == week
    assert names(moment)[Window.MONTH] == month


def test_windows_are_utc_in_any_time_zone() -> None:
    midnight_in_kolkata = datetime(2026, 11, 16, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    assert names(midnight_in_kolkata)[Window.DAY] == "2026-11-15"
    assert names(midnight_in_kolkata)[Window.HOUR] == "2026-11-15T18"


@given(MOMENTS, st.sampled_from(CALENDAR))
def test_a_bucket_lasts_until_its_end_and_not_longer(moment: datetime, window: Window) -> None:
    ends_at = end(moment, window)

    assert moment < ends_at
    assert names(ends_at - A_MICROSECOND)[window] == names(moment)[window]
    assert names(ends_at)[window] != names(moment)[window]


@given(MOMENTS)
def test_a_lifetime_expires_long_after_the_last_impression(moment: datetime) -> None:
    assert LIFETIME_KEPT < end(moment, Window.LIFETIME) - moment <= LIFETIME_KEPT + timedelta(days=31)


@given(MOMENTS, st.timedeltas(timedelta(), timedelta(minutes=59)))
def test_moments_of_one_hour_share_all_their_buckets(moment: datetime, later: timedelta) -> None:
    hour = moment.replace(minute=0, second=0, microsecond=0)

    assert names(hour) == names(hour + later)


@given(MOMENTS, st.timedeltas(timedelta(days=-40), timedelta(minutes=55)))
def test_every_bucket_that_may_hold_counts_is_live(now: datetime, offset: timedelta) -> None:
    kept = {
        bucket.suffix
        for bucket in list_buckets(now + offset)
        if datetime.fromtimestamp(bucket.expires_at, UTC) > now
    }

    assert kept <= {bucket.suffix for bucket in list_live_buckets(now)}


@given(MOMENTS, st.timedeltas(timedelta(microseconds=1), timedelta(days=40)))
def test_every_bucket_except_lifetime_ends_before_the_live_period(now: datetime, earlier: timedelta) -> None:
    moment = find_live_start(now) - earlier

    assert all(
        datetime.fromtimestamp(bucket.expires_at, UTC) < now
        for bucket in list_buckets(moment)
        if bucket.window is not Window.LIFETIME
    )
