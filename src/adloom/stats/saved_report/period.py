"""The named periods of a report, and when it is due by e-mail: at an hour of a day in the time zone of its owner."""

# pure

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

ONE_DAY: Final = timedelta(days=1)
ONE_WEEK: Final = timedelta(days=7)
# A month, and a day on either side: where the clock is far from UTC, it is another day there.
LOOK_DAYS_MAX: Final = 33


class ReportPeriod(StrEnum):
    """Days that are counted from today; weeks begin on Monday. Those that go on include today."""

    TODAY = "today"
    YESTERDAY = "yesterday"
    LAST_7_DAYS = "last_7_days"
    LAST_30_DAYS = "last_30_days"
    LAST_90_DAYS = "last_90_days"
    LAST_WEEK = "last_week"
    THIS_MONTH = "this_month"
    LAST_MONTH = "last_month"


LENGTHS: Final = {
    ReportPeriod.TODAY: 1,
    ReportPeriod.LAST_7_DAYS: 7,
    ReportPeriod.LAST_30_DAYS: 30,
    ReportPeriod.LAST_90_DAYS: 90,
}
Days = tuple[date, date]  # Both included.


def find_days(period: ReportPeriod, *, today: date) -> Days:
    """Return the days of a named period."""
    match period:
        case ReportPeriod.YESTERDAY:
            return today - ONE_DAY, today - ONE_DAY
        case ReportPeriod.LAST_WEEK:
            monday = today - timedelta(days=today.weekday())
            return monday - ONE_WEEK, monday - ONE_DAY
        case ReportPeriod.THIS_MONTH:
            return today.replace(day=1), today
        case ReportPeriod.LAST_MONTH:
            last = today.replace(day=1) - ONE_DAY
            return last.replace(day=1), last
        case _:
            return today - timedelta(days=LENGTHS[period] - 1), today


def find_period(days: Days, *, today: date) -> ReportPeriod | None:
    """Return the named period that days form, if any."""
    return next((period for period in ReportPeriod if find_days(period, today=today) == days), None)


def find_days_before(days: Days) -> Days:
    """Return the period before: of a month, or of its first days, those of the month before; else as many days."""
    first, last = days
    if first.day == 1 and (first.year, first.month) == (last.year, last.month):
        end = first - ONE_DAY
        is_whole = (last + ONE_DAY).day == 1
        return end.replace(day=1), end if is_whole else end.replace(day=min(last.day, end.day))
    length = last - first + ONE_DAY
    return first - length, last - length


class SendEvery(StrEnum):
    """How often a report is sent; monthly on the first day of a month."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class SendSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a report is sent: `weekday` (1 is Monday) counts for weekly ones."""

    every: SendEvery
    weekday: int
    hour: int
    zone: ZoneInfo

    def is_on(self, day: date) -> bool:
        match self.every:
            case SendEvery.DAILY:
                return True
            case SendEvery.WEEKLY:
                return day.isoweekday() == self.weekday
            case SendEvery.MONTHLY:
                return day.day == 1

    def find_moment(self, day: date) -> datetime:
        """Return the moment of a day. An hour that the clock skips is the next one, one that it repeats is the first."""
        return datetime.combine(day, time(self.hour), self.zone).astimezone(UTC)


class Due(msgspec.Struct, frozen=True):
    """A day on which a report is due, in its owner's zone, and the moment. A day is sent once, whatever its hour."""

    on: date
    at: datetime


def find_latest_due(schedule: SendSchedule, now: datetime) -> Due:
    """Return what came due last, until now; earlier ones that were missed are not made up for."""
    day = now.astimezone(schedule.zone).date() + ONE_DAY
    for number in range(LOOK_DAYS_MAX + 1):
        on = day - number * ONE_DAY
        if schedule.is_on(on) and (at := schedule.find_moment(on)) <= now:
            return Due(on, at)
    raise AssertionError("every month has a first day")


def find_next_due(schedule: SendSchedule, now: datetime) -> Due:
    """Return what comes due next, after now."""
    day = now.astimezone(schedule.zone).date() - ONE_DAY
    for number in range(LOOK_DAYS_MAX + 1):
        on = day + number * ONE_DAY
        if schedule.is_on(on) and (at := schedule.find_moment(on)) > now:
            return Due(on, at)
    raise AssertionError("every month has a first day")
