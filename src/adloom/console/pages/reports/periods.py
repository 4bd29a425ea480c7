"""The named periods of a report, and the period before one."""

# pure

from datetime import date, timedelta
from typing import Final

ONE_DAY: Final = timedelta(days=1)
PERIODS: Final = {
    "today": "Today",
    "yesterday": "Yesterday",
    "7": "Last 7 days",
    "30": "Last 30 days",
    "90": "Last 90 days",
    "month": "This month",
    "last-month": "Last month",
}

Days = tuple[date, date]  # Both included.


def find_days(period: str, *, today: date) -> Days:
    """Return the days of a named period."""
    match period:
        case "today":
            return today, today
        case "yesterday":
            return today - ONE_DAY, today - ONE_DAY
        case "month":
            return today.replace(day=1), today
        case "last-month":
            last = today.replace(day=1) - ONE_DAY
            return last.replace(day=1), last
        case _:
            return today - timedelta(days=int(period) - 1), today


def find_period(days: Days, *, today: date) -> str | None:
    """Return the named period that days form, if any."""
    return next((period for period in PERIODS if find_days(period, today=today) == days), None)


def find_days_before(days: Days) -> Days:
    """Return the period before: of a month, or of its first days, those of the month before; else as many days."""
    first, last = days
    if first.day == 1 and (first.year, first.month) == (last.year, last.month):
        end = first - ONE_DAY
        is_whole = (last + ONE_DAY).day == 1
        return end.replace(day=1), end if is_whole else end.replace(day=min(last.day, end.day))
    length = last - first + ONE_DAY
    return first - length, last - length
