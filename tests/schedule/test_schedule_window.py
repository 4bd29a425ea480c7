"""When a schedule is open: the table of statuses, windows, zones, and nights on which clocks change."""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from adloom.schedule.schedule import Schedule, ScheduleStatus
from adloom.schedule.schedule_window import ClosedReason, find_closed_reason, find_next_change, is_open
from tests.schedule.builders import NOON, a_schedule, a_window, utc
from tests.support.for_each import for_each

BEFORE = NOON - timedelta(hours=1)
AFTER = NOON + timedelta(hours=1)
SECOND = timedelta(seconds=1)


@for_each(
    ("status", "publish_at", "expires_at", "closed"),
    [
        ("draft", None, None, ClosedReason.DRAFT),
        ("draft", BEFORE, AFTER, ClosedReason.DRAFT),
        ("expired", None, None, ClosedReason.EXPIRED),
        ("expired", BEFORE, AFTER, ClosedReason.EXPIRED),
        ("evergreen", None, None, None),
        ("evergreen", AFTER, BEFORE, None),
        ("scheduled", None, None, None),
        ("scheduled", BEFORE, None, None),
        ("scheduled", NOON, None, None),
        ("scheduled", AFTER, None, ClosedReason.NOT_YET_PUBLISHED),
        ("scheduled", BEFORE, AFTER, None),
        ("scheduled", BEFORE, NOON, ClosedReason.EXPIRED),
        ("active", None, None, None),
        ("active", BEFORE, None, None),
        ("active", AFTER, None, ClosedReason.NOT_YET_PUBLISHED),
        ("active", BEFORE, AFTER, None),
        ("active", None, NOON, ClosedReason.EXPIRED),
    ],
)
def test_status_and_dates_decide_whether_a_schedule_is_open(
    status: str, publish_at: datetime | None, expires_at: datetime | None, closed: ClosedReason | None
) -> None:
    schedule = a_schedule(status=ScheduleStatus(status), publish_at=publish_at, expires_at=expires_at)

    assert find_closed_reason(schedule, now=NOON) == closed
    assert is_open(schedule, now=NOON) == (closed is None)


def seconds_open(schedule: Schedule, start: str, end: str) -> int:
    first, last = utc(start), utc(end)
    moments = (first + timedelta(seconds=number) for number in range(int((last - first).total_seconds())))
    return sum(is_open(schedule, now=moment) for moment in moments)


def test_a_window_in_the_hour_that_spring_skips_does_not_open_that_night() -> None:
    schedule = a_window("02:00", "02:59:59", timezone="Europe/Berlin")

    assert seconds_open(schedule, "2026-03-28T00:00", "2026-03-28T04:00") == 3600
    assert seconds_open(schedule, "2026-03-29T00:00", "2026-03-29T04:00") == 0


def test_a_window_in_the_hour_that_autumn_repeats_is_open_both_times() -> None:
    schedule = a_window("02:00", "02:59:59", timezone="Europe/Berlin")

    assert seconds_open(schedule, "2026-10-25T00:00", "2026-10-25T04:00") == 7200


def test_a_window_over_a_night_is_an_hour_shorter_in_spring_and_longer_in_autumn() -> None:
    schedule = a_window("22:00", "05:59:59", timezone="Europe/Berlin")

    assert seconds_open(schedule, "2026-03-28T12:00", "2026-03-29T12:00") == 7 * 3600
    assert seconds_open(schedule, "2026-10-24T12:00", "2026-10-25T12:00") == 9 * 3600


def test_a_recurring_day_with_a_window_is_open_during_the_window() -> None:
    schedule = a_window("09:00", "17:00", recurrence_rule="FREQ=WEEKLY;BYDAY=SU")

    assert is_open(schedule, now=NOON)
    assert find_closed_reason(schedule, now=utc("2026-11-15T18:00:00")) == ClosedReason.OUTSIDE_WINDOW
    assert find_closed_reason(schedule, now=utc("2026-11-16T12:00:00")) == ClosedReason.NOT_RECURRING_NOW


def test_a_rule_with_hours_is_open_in_those_hours_and_a_window_narrows_them() -> None:
    hours = "FREQ=DAILY;BYHOUR=9,10"

    assert seconds_open(a_schedule(recurrence_rule=hours), "2026-11-15T00:00", "2026-11-16T00:00") == 7200
    assert (
        seconds_open(
            a_window("09:30", "23:59:59", recurrence_rule=hours), "2026-11-15T00:00", "2026-11-16T00:00"
        )
        == 5400
    )


def test_a_rule_does_not_open_before_it_is_published_or_after_it_expired() -> None:
    schedule = a_schedule(
        status=ScheduleStatus.ACTIVE, publish_at=BEFORE, expires_at=AFTER, recurrence_rule="FREQ=DAILY"
    )

    assert find_closed_reason(schedule, now=BEFORE - SECOND) == ClosedReason.NOT_YET_PUBLISHED
    assert is_open(schedule, now=NOON)
    assert find_closed_reason(schedule, now=AFTER) == ClosedReason.EXPIRED


@pytest.mark.parametrize(
    "unreadable", [{"timezone": "Europe/Atlantis"}, {"recurrence_rule": "FREQ=SECONDLY"}]
)
def test_a_schedule_with_an_unreadable_rule_or_zone_is_closed(unreadable: dict[str, str]) -> None:
    schedule = a_schedule(**{"recurrence_rule": "FREQ=DAILY", **unreadable})

    assert find_closed_reason(schedule, now=NOON) == ClosedReason.UNREADABLE
    assert find_next_change(schedule, now=NOON) is None


@for_each(
    ("schedule", "expected"),
    [
        (a_schedule(), None),
        (a_schedule(status=ScheduleStatus.DRAFT, publish_at=AFTER), None),
        (a_schedule(status=ScheduleStatus.EXPIRED, publish_at=AFTER), None),
        (a_schedule(status=ScheduleStatus.SCHEDULED, publish_at=AFTER), AFTER),
        (a_schedule(status=ScheduleStatus.ACTIVE, publish_at=BEFORE), None),
        (a_schedule(status=ScheduleStatus.ACTIVE, publish_at=BEFORE, expires_at=AFTER), AFTER),
        (a_schedule(status=ScheduleStatus.ACTIVE, expires_at=NOON), None),
        (a_window("09:00", "17:00"), utc("2026-11-15T17:00:01")),
        (a_window("13:00", "17:00"), utc("2026-11-15T13:00:00")),
        (a_window("09:00", "11:59:59"), utc("2026-11-16T09:00:00")),
        (a_window("00:00", "23:59:59"), utc("2026-11-16T00:00:00")),
        (a_schedule(recurrence_rule="FREQ=DAILY"), utc("2026-11-16T00:00:00")),
        (a_schedule(recurrence_rule="FREQ=DAILY;BYHOUR=3"), utc("2026-11-15T13:00:00")),
        (a_window("09:00", "17:00", status=ScheduleStatus.ACTIVE, expires_at=AFTER), AFTER),
    ],
)
def test_the_next_change_is_the_next_boundary(schedule: Schedule, expected: datetime | None) -> None:
    assert find_next_change(schedule, now=NOON) == expected


def test_a_clock_change_can_be_the_next_change() -> None:
    schedule = a_window("02:30", "04:00", timezone="Europe/Berlin")

    assert find_next_change(schedule, now=utc("2026-03-29T00:15")) == utc("2026-03-29T01:00")


# Laws, on schedules and moments of all kinds.

ZONES = [
    *("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"),
    *("Pacific/Apia", "Africa/Casablanca", "America/New_York", "Antarctica/Troll"),
]
RULES = [
    *("FREQ=DAILY", "FREQ=DAILY;INTERVAL=2", "FREQ=WEEKLY;BYDAY=SA,SU", "FREQ=WEEKLY;INTERVAL=2;BYDAY=WE"),
    *("FREQ=MONTHLY;BYDAY=-1SU", "FREQ=MONTHLY;BYMONTHDAY=1,15,-1", "FREQ=DAILY;BYHOUR=2,3,14"),
    *("FREQ=YEARLY;BYMONTH=3,10,11;BYDAY=SU", "FREQ=DAILY;COUNT=300", "FREQ=DAILY;UNTIL=20261101"),
]
# Around the nights on which clocks change, and on any day.
MOMENTS = st.one_of(
    st.datetimes(utc("2026-03-28T20:00").replace(tzinfo=None), utc("2026-03-29T12:00").replace(tzinfo=None)),
    st.datetimes(utc("2026-10-24T20:00").replace(tzinfo=None), utc("2026-10-25T12:00").replace(tzinfo=None)),
    st.datetimes(utc("2026-02-01T00:00").replace(tzinfo=None), utc("2026-12-31T00:00").replace(tzinfo=None)),
).map(lambda moment: moment.replace(tzinfo=UTC))
TIMES = st.times().map(lambda one: one.replace(microsecond=0)) | st.sampled_from(
    [time(0), time(1), time(2), time(2, 30), time(3), time(23, 59, 59)]
)
CREATED_AT = utc("2026-01-05T10:00")


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    has_window = draw(st.booleans())
    return Schedule(
        status=draw(st.sampled_from(ScheduleStatus)),
        publish_at=draw(st.none() | MOMENTS),
        expires_at=draw(st.none() | MOMENTS),
        timezone=draw(st.sampled_from(ZONES)),
        recurrence_rule=draw(st.none() | st.sampled_from(RULES)),
        window_start=draw(TIMES) if has_window else None,
        window_end=draw(TIMES) if has_window else None,
        created_at=CREATED_AT,
    )


@given(schedules(), MOMENTS)
def test_nothing_changes_before_the_next_change(schedule: Schedule, now: datetime) -> None:
    answer = is_open(schedule, now=now)
    change = find_next_change(schedule, now=now)

    assert change is None or change > now
    end = change or now + timedelta(days=40)
    for share in range(200):
        moment = now + (end - now) * share / 200
        assert is_open(schedule, now=moment) is answer
    assert is_open(schedule, now=end - timedelta(microseconds=1)) is answer


@given(schedules(), MOMENTS)
def test_a_schedule_is_open_when_the_naive_reference_says_so(schedule: Schedule, now: datetime) -> None:
    for minutes in range(0, 60 * 26, 7):
        moment = now + timedelta(minutes=minutes)
        assert is_open(schedule, now=moment) is is_open_naively(schedule, moment)


def is_open_naively(schedule: Schedule, now: datetime) -> bool:
    """The naive reference: it compares times as text and lists all days."""
    local = now.astimezone(ZoneInfo(schedule.timezone))
    shown = f"{local:%H:%M:%S}"
    start, end = f"{schedule.window_start or time(0)}", f"{schedule.window_end or time(23, 59, 59)}"
    is_after_midnight = shown <= end < start
    return (
        is_dated_open(schedule, now)
        and (start <= shown <= end or (start > end and (shown >= start or is_after_midnight)))
        and is_named(schedule, local, is_after_midnight=is_after_midnight)
    )


def is_dated_open(schedule: Schedule, now: datetime) -> bool:
    if schedule.status not in {"scheduled", "active"}:
        return schedule.status == "evergreen"
    has_begun = schedule.publish_at is None or schedule.publish_at <= now
    return has_begun and (schedule.expires_at is None or schedule.expires_at > now)


def is_named(schedule: Schedule, local: datetime, *, is_after_midnight: bool) -> bool:
    if schedule.recurrence_rule is None:
        return True
    if "BYHOUR" in schedule.recurrence_rule:
        return local.hour in {2, 3, 14}
    anchor = (schedule.publish_at or CREATED_AT).astimezone(ZoneInfo(schedule.timezone)).date()
    return local.date() - timedelta(days=is_after_midnight) in all_days(schedule.recurrence_rule, anchor)


@lru_cache
def all_days(rule: str, anchor: date) -> set[date]:
    # A rule also repeats before the anchor, except where COUNT limits it.
    first = anchor if "COUNT" in rule else anchor - timedelta(weeks=52)
    walk = rrulestr(rule, dtstart=datetime.combine(first, time.min))
    return {one.date() for one in walk.between(NEAR, FAR, inc=True)}


NEAR = datetime.fromisoformat("2025-01-01T00:00:00")
FAR = datetime.fromisoformat("2027-12-31T00:00:00")
