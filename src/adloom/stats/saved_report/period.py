"""The named periods of a report, and the period before one."""

# pure

from datetime import date, timedelta
from enum import StrEnum
from typing import Final

ONE_DAY: Final = timedelta(days=1)
ONE_WEEK: Final = timedelta(days=7)


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
